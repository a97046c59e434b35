// Answers what Go's text/template makes of templates: JSON lines {"template","data"} in, {"output","error"} out.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/template"
	"time"
)

type question struct {
	Template string            `json:"template"`
	Data     map[string]string `json:"data"`
}

type answer struct {
	Output string `json:"output"`
	Error  string `json:"error"`
	// The template ran for so long that nothing can be said about it.
	Endless bool `json:"endless,omitempty"`
}

func ask(q question) answer {
	var out bytes.Buffer
	t, err := template.New("t").Option("missingkey=error").Parse(q.Template)
	if err == nil {
		err = t.Execute(&out, q.Data)
	}
	a := answer{Output: out.String()}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

func run() error {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	buffered := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer buffered.Flush()
	out := json.NewEncoder(buffered)
	out.SetEscapeHTML(false)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		done := make(chan answer, 1)
		go func() { done <- ask(q) }()
		a := answer{Endless: true}
		select {
		case a = <-done:
		case <-time.After(5 * time.Second):
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
