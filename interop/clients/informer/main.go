// An informer of client-go, which lists by watching, must stay in sync while the control plane is killed again and again.
//
//	informer ORRERY [CRASHES]
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"interop/clients/plane"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const writesBetweenCrashes = 100

func main() {
	crashes := 5
	if len(os.Args) > 2 {
		crashes, _ = strconv.Atoi(os.Args[2])
	}
	err := plane.With(os.Args[1], func(ctx context.Context, orrery *plane.Plane, config *rest.Config) error {
		return run(ctx, orrery, config, crashes)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, orrery *plane.Plane, config *rest.Config, crashes int) error {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}

	factory := informers.NewSharedInformerFactory(client, 0)
	configMaps := factory.Core().V1().ConfigMaps()
	var events atomic.Int64
	counted := func(any) { events.Add(1) }
	configMaps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    counted,
		UpdateFunc: func(_, _ any) { events.Add(1) },
		DeleteFunc: counted,
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	written := 0
	for crash := 0; crash <= crashes; crash++ {
		for i := 0; i < writesBetweenCrashes; i++ {
			if err := write(ctx, client, written); err != nil {
				return err
			}
			written++
		}
		if crash < crashes {
			if err := orrery.Crash(); err != nil {
				return err
			}
		}
	}

	var there, seen map[string]string
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().ConfigMaps("default").List(ctx, meta.ListOptions{})
		if err != nil {
			return false, nil
		}
		there = map[string]string{}
		for _, item := range list.Items {
			there[item.Name] = item.ResourceVersion
		}
		cached, err := configMaps.Lister().ConfigMaps("default").List(labels.Everything())
		if err != nil {
			return false, err
		}
		seen = map[string]string{}
		for _, item := range cached {
			seen[item.Name] = item.ResourceVersion
		}
		return maps.Equal(there, seen), nil
	})
	if err != nil {
		return fmt.Errorf("the informer has %d objects, the server %d: %w", len(seen), len(there), err)
	}
	fmt.Printf("in sync: %d objects after %d writes and %d crashes, %d events\n", len(seen), written, crashes, events.Load())
	return nil
}

// Makes an object, changes it, and removes every third one. What fails because the server is away is tried again.
func write(ctx context.Context, client kubernetes.Interface, number int) error {
	api := client.CoreV1().ConfigMaps("default")
	name := fmt.Sprintf("object-%05d", number)
	return again(ctx, func() error {
		made, err := api.Create(ctx, &v1.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
		if errors.IsAlreadyExists(err) {
			made, err = api.Get(ctx, name, meta.GetOptions{})
		}
		if err != nil {
			return err
		}
		made.Data = map[string]string{"number": strconv.Itoa(number)}
		if _, err := api.Update(ctx, made, meta.UpdateOptions{}); err != nil {
			return err
		}
		if number%3 != 0 {
			return nil
		}
		return api.Delete(ctx, name, meta.DeleteOptions{})
	})
}

func again(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
