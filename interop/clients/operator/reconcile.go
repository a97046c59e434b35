package main

import (
	"context"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	finalizer = "interop.example.com/registered"
	// Something outside of the website, which only the operator can take away again.
	registry = "registered-websites"
)

// Operator gives every website a config map with its page and a deployment, and registers it while it exists.
type Operator struct {
	client.Client
}

func (o *Operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	website := &Website{}
	if err := o.Get(ctx, request.NamespacedName, website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !website.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(website, finalizer) {
			return ctrl.Result{}, nil
		}
		if err := o.register(ctx, website, false); err != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(website, finalizer)
		return ctrl.Result{}, o.Update(ctx, website)
	}
	if controllerutil.AddFinalizer(website, finalizer) {
		return ctrl.Result{}, o.Update(ctx, website)
	}
	if err := o.register(ctx, website, true); err != nil {
		return ctrl.Result{}, err
	}
	if err := o.owned(ctx, website); err != nil {
		return ctrl.Result{}, err
	}
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Served", ObservedGeneration: website.Generation,
	}
	if meta.SetStatusCondition(&website.Status.Conditions, ready) || website.Status.ObservedGeneration != website.Generation {
		website.Status.ObservedGeneration = website.Generation
		return ctrl.Result{}, o.Status().Update(ctx, website)
	}
	return ctrl.Result{}, nil
}

func (o *Operator) owned(ctx context.Context, website *Website) error {
	named := metav1.ObjectMeta{Name: website.Name, Namespace: website.Namespace}
	page := &core.ConfigMap{ObjectMeta: named}
	_, err := controllerutil.CreateOrUpdate(ctx, o.Client, page, func() error {
		page.Data = map[string]string{"index.html": website.Spec.Page}
		return controllerutil.SetControllerReference(website, page, o.Scheme())
	})
	if err != nil {
		return err
	}
	server := &apps.Deployment{ObjectMeta: named}
	_, err = controllerutil.CreateOrUpdate(ctx, o.Client, server, func() error {
		labels := map[string]string{"website": website.Name}
		server.Spec.Replicas = &website.Spec.Replicas
		server.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		server.Spec.Template.Labels = labels
		if len(server.Spec.Template.Spec.Containers) == 0 {
			server.Spec.Template.Spec.Containers = []core.Container{{Name: "web", Image: "web:1"}}
		}
		return controllerutil.SetControllerReference(website, server, o.Scheme())
	})
	return err
}

func (o *Operator) register(ctx context.Context, website *Website, there bool) error {
	all := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: registry, Namespace: website.Namespace}}
	_, err := controllerutil.CreateOrPatch(ctx, o.Client, all, func() error {
		if all.Data == nil {
			all.Data = map[string]string{}
		}
		if there {
			all.Data[website.Name] = "yes"
		} else {
			delete(all.Data, website.Name)
		}
		return nil
	})
	return err
}

func name(object string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: object}
}
