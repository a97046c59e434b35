// Measures Go's text/template: JSON lines {"template","data"} in; out, the nanoseconds per template to parse and execute, and
// to execute only.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"text/template"
	"time"
)

type question struct {
	Template string            `json:"template"`
	Data     map[string]string `json:"data"`
}

func parse(q question) *template.Template {
	return template.Must(template.New("t").Option("missingkey=error").Parse(q.Template))
}

func execute(t *template.Template, q question) {
	var out bytes.Buffer
	if err := t.Execute(&out, q.Data); err != nil {
		panic(err)
	}
}

// Nanoseconds per template in the median round.
func median(rounds, count int, round func()) float64 {
	round()
	times := make([]time.Duration, rounds)
	for i := range times {
		start := time.Now()
		round()
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return float64(times[rounds/2].Nanoseconds()) / float64(count)
}

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	var questions []question
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			panic(err)
		}
		questions = append(questions, q)
	}
	parsed := make([]*template.Template, len(questions))
	for i, q := range questions {
		parsed[i] = parse(q)
	}
	whole := median(rounds, len(questions), func() {
		for _, q := range questions {
			execute(parse(q), q)
		}
	})
	execution := median(rounds, len(questions), func() {
		for i, q := range questions {
			execute(parsed[i], q)
		}
	})
	fmt.Printf("%.0f %.0f\n", whole, execution)
}
