// An operator written with controller-runtime goes through the whole life of a custom resource: definition, defaults, a rule,
// owned objects, status, finalizer, garbage collection.
//
//	operator ORRERY
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"interop/clients/plane"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := plane.With(os.Args[1], run); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, _ *plane.Plane, config *rest.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme} {
		if err := add(types); err != nil {
			return err
		}
	}
	addToScheme(types)
	user, err := client.New(config, client.Options{Scheme: types})
	if err != nil {
		return err
	}
	if err := define(ctx, user); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	ended, err := operate(ctx, config, types)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step.do(ctx, user); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println("ok:", step.name)
	}
	stop()
	return <-ended
}

func define(ctx context.Context, user client.Client) error {
	defined := definition()
	if err := user.Create(ctx, defined); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		if err := user.Get(ctx, client.ObjectKeyFromObject(defined), defined); err != nil {
			return false, err
		}
		for _, condition := range defined.Status.Conditions {
			if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

// Runs the operator until the context ends.
func operate(ctx context.Context, config *rest.Config, types *runtime.Scheme) (chan error, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: types, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "websites", LeaderElectionNamespace: "default",
	})
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&Website{}).Owns(&core.ConfigMap{}).Owns(&apps.Deployment{}).
		Complete(&Operator{Client: manager.GetClient()})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return ended, nil
}

type step struct {
	name string
	do   func(context.Context, client.Client) error
}

var steps = []step{
	{"a website that breaks the rule is refused", func(ctx context.Context, user client.Client) error {
		err := user.Create(ctx, website("greedy", 11))
		if err == nil || !strings.Contains(err.Error(), "ten replicas are enough") {
			return fmt.Errorf("it was answered with %v", err)
		}
		return nil
	}},
	{"a website gets its defaults", func(ctx context.Context, user client.Client) error {
		made := website("home", 0)
		if err := user.Create(ctx, made); err != nil {
			return err
		}
		if made.Spec.Replicas != 1 {
			return fmt.Errorf("it has %d replicas", made.Spec.Replicas)
		}
		return nil
	}},
	{"the operator reports it ready", func(ctx context.Context, user client.Client) error {
		return ready(ctx, user, "home", 1)
	}},
	{"a change reaches what the website owns", func(ctx context.Context, user client.Client) error {
		changed := &Website{}
		if err := user.Get(ctx, name("home"), changed); err != nil {
			return err
		}
		before := changed.DeepCopyObject().(*Website)
		changed.Spec.Page, changed.Spec.Replicas = "changed", 3
		if err := user.Patch(ctx, changed, client.MergeFrom(before)); err != nil {
			return err
		}
		if err := ready(ctx, user, "home", 2); err != nil {
			return err
		}
		page, served := &core.ConfigMap{}, &apps.Deployment{}
		if err := user.Get(ctx, name("home"), page); err != nil {
			return err
		}
		if err := user.Get(ctx, name("home"), served); err != nil {
			return err
		}
		if page.Data["index.html"] != "changed" || *served.Spec.Replicas != 3 {
			return fmt.Errorf("the page is %q, served by %d", page.Data["index.html"], *served.Spec.Replicas)
		}
		return nil
	}},
	{"what somebody removes comes back", func(ctx context.Context, user client.Client) error {
		page := &core.ConfigMap{}
		if err := user.Get(ctx, name("home"), page); err != nil {
			return err
		}
		removed := page.UID
		if err := user.Delete(ctx, page); err != nil {
			return err
		}
		return until(ctx, func() (bool, error) {
			page := &core.ConfigMap{}
			err := user.Get(ctx, name("home"), page)
			return err == nil && page.UID != removed, client.IgnoreNotFound(err)
		})
	}},
	{"a website that goes is taken off the list, and all it owns goes too", func(ctx context.Context, user client.Client) error {
		if err := user.Delete(ctx, website("home", 0)); err != nil {
			return err
		}
		for _, object := range []client.Object{&Website{}, &core.ConfigMap{}, &apps.Deployment{}} {
			err := until(ctx, func() (bool, error) {
				err := user.Get(ctx, name("home"), object)
				return errors.IsNotFound(err), client.IgnoreNotFound(err)
			})
			if err != nil {
				return fmt.Errorf("%T: %w", object, err)
			}
		}
		all := &core.ConfigMap{}
		if err := user.Get(ctx, name(registry), all); err != nil {
			return err
		}
		if len(all.Data) != 0 {
			return fmt.Errorf("still registered: %v", all.Data)
		}
		return nil
	}},
	{"the definition goes with its last objects", func(ctx context.Context, user client.Client) error {
		if err := user.Create(ctx, website("last", 1)); err != nil {
			return err
		}
		if err := ready(ctx, user, "last", 1); err != nil {
			return err
		}
		defined := definition()
		if err := user.Delete(ctx, defined); err != nil {
			return err
		}
		return until(ctx, func() (bool, error) {
			err := user.Get(ctx, client.ObjectKeyFromObject(defined), defined)
			return errors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}},
}

func website(name string, replicas int32) *Website {
	return &Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       WebsiteSpec{Page: "hello", Replicas: replicas},
	}
}

// Waits until the operator has dealt with a generation of a website.
func ready(ctx context.Context, user client.Client, website string, generation int64) error {
	return until(ctx, func() (bool, error) {
		seen := &Website{}
		if err := user.Get(ctx, name(website), seen); err != nil {
			return false, err
		}
		return meta.IsStatusConditionTrue(seen.Status.Conditions, "Ready") && seen.Status.ObservedGeneration >= generation, nil
	})
}

func until(ctx context.Context, holds func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return holds()
	})
}
