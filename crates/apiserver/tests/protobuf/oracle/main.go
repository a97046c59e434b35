// Writes objects of Kubernetes' kinds as JSON and as protobuf, both by Kubernetes' own code, for the tests of the API server to compare with.
//
// It reads lines of "apiVersion kind" and writes a line of JSON for each kind and manner: nothing set, everything set, and a random part of it.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A hash is enough: whoever writes the same bytes has the bytes.
type line struct {
	How    string          `json:"how"`
	JSON   json.RawMessage `json:"json"`
	Length int             `json:"length"`
	SHA256 string          `json:"sha256"`
}

func main() {
	must(apiextensions.AddToScheme(scheme.Scheme))
	must(aggregator.AddToScheme(scheme.Scheme))
	meta := schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
	scheme.Scheme.AddKnownTypes(meta, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{})
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	kinds := bufio.NewScanner(os.Stdin)
	for kinds.Scan() {
		words := strings.Fields(kinds.Text())
		kind := schema.FromAPIVersionAndKind(words[0], words[1])
		for _, how := range []string{"nothing", "everything", "something"} {
			object, err := scheme.Scheme.New(kind)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				break
			}
			seed := fnv.New64()
			seed.Write([]byte(kind.String() + how))
			filler := &filler{how: how, random: rand.New(rand.NewSource(int64(seed.Sum64())))}
			filler.fill(reflect.ValueOf(object).Elem(), 0)
			object.GetObjectKind().SetGroupVersionKind(kind)
			text, err := json.Marshal(object)
			must(err)
			var message bytes.Buffer
			must(serializer.Encode(object, &message))
			written, err := json.Marshal(line{how, text, message.Len(), fmt.Sprintf("%x", sha256.Sum256(message.Bytes()))})
			must(err)
			fmt.Println(string(written))
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type filler struct {
	how    string
	random *rand.Rand
	count  int
}

var texts = []string{"a", "x y", "<&>\"\\/", "line\nline\t\u2028", "grün", "日本", "\u0001", ""}
var quantities = []string{"0", "1", "500m", "1Gi", "128Mi", "-3", "1e3", "12345678901", "0.001", "5M"}
var documents = []string{`{"a":1,"b":[null,true,"x"]}`, `"text"`, `7`, `[1.5,{}]`, `false`}

func (f *filler) fill(v reflect.Value, depth int) {
	if f.how == "nothing" {
		return
	}
	f.count++
	pick := func(from []string) string { return from[(f.count+f.random.Intn(len(from)))%len(from)] }
	switch value := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *metav1.Time:
		*value = metav1.NewTime(time.Unix(1700000000+int64(f.random.Intn(1<<30))-1<<29, 0).UTC())
		return
	case *metav1.MicroTime:
		*value = metav1.NewMicroTime(time.Unix(1700000000+int64(f.random.Intn(1<<20)), int64(f.random.Intn(1000000))*1000).UTC())
		return
	case *resource.Quantity:
		*value = resource.MustParse(pick(quantities))
		return
	case *intstr.IntOrString:
		if f.random.Intn(2) == 0 {
			*value = intstr.FromString(pick(texts[:3]))
		} else {
			*value = intstr.FromInt32(f.random.Int31() - 1<<30)
		}
		return
	case *runtime.RawExtension:
		value.Raw = []byte(documents[0])
		return
	case *metav1.FieldsV1:
		value.Raw = []byte(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`)
		return
	case *apiextensions.JSON:
		value.Raw = []byte(pick(documents))
		return
	case *apiextensions.JSONSchemaPropsOrArray:
		if depth < 8 && f.random.Intn(2) == 0 {
			value.JSONSchemas = make([]apiextensions.JSONSchemaProps, 2)
			f.fill(reflect.ValueOf(&value.JSONSchemas[0]).Elem(), 20)
			f.fill(reflect.ValueOf(&value.JSONSchemas[1]).Elem(), 20)
		} else {
			value.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		}
		return
	case *apiextensions.JSONSchemaPropsOrBool:
		value.Allows = f.random.Intn(2) == 0
		if f.random.Intn(2) == 0 {
			value.Allows, value.Schema = true, &apiextensions.JSONSchemaProps{Type: "integer", Required: []string{"a", "b"}}
		}
		return
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if f.random.Intn(2) == 0 {
			value.Property = []string{"a", pick(texts)}
		} else {
			value.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeOf(apiextensions.JSONSchemaProps{}) && depth > 6 {
			v.FieldByName("Type").SetString("object")
			return
		}
		for i := range v.NumField() {
			if f.how == "something" && depth > 0 && f.random.Intn(2) == 0 {
				continue
			}
			f.fill(v.Field(i), depth+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			bytes := make([]byte, 1+f.random.Intn(5))
			f.random.Read(bytes)
			v.SetBytes(bytes)
			return
		}
		length := 1
		if depth < 3 || f.random.Intn(4) == 0 {
			length = 2
		}
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := range length {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"k", "a/b"}[:1+f.random.Intn(2)] {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, depth+1)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
		}
	case reflect.String:
		v.SetString(pick(texts))
	case reflect.Bool:
		v.SetBool(f.how == "everything" || f.random.Intn(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(f.random.Int31()>>uint(f.random.Intn(31))) - 1<<10)
	case reflect.Int64:
		v.SetInt(f.random.Int63()>>uint(f.random.Intn(63)) - 1<<10)
	case reflect.Float64:
		v.SetFloat(float64(f.random.Intn(1000)) / 8)
	default:
		panic(v.Type().String())
	}
}
