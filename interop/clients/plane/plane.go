// Package plane starts an orrery in a directory of its own, kills it and starts it again.
package plane

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Plane is a control plane of which the program can be replaced while its data stays.
type Plane struct {
	program, directory, address string
	running                     *exec.Cmd
}

// With runs something against a control plane of its own, and ends the context and the plane after it.
func With(program string, do func(context.Context, *Plane, *rest.Config) error) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	plane, err := start(program)
	if err != nil {
		return err
	}
	defer plane.Stop()
	config, err := plane.config()
	if err != nil {
		return err
	}
	return do(ctx, plane, config)
}

// Runs the program with an empty data directory.
func start(program string) (*Plane, error) {
	directory, err := os.MkdirTemp("", "orrery-interop-")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	listener.Close()
	plane := &Plane{program: program, directory: directory, address: address}
	return plane, plane.run()
}

func (p *Plane) run() error {
	running := exec.Command(p.program, "up", "--listen", p.address, "--data-dir", p.directory)
	running.Stderr = os.Stderr
	output, err := running.StdoutPipe()
	if err != nil {
		return err
	}
	if err := running.Start(); err != nil {
		return err
	}
	p.running = running
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready: ") {
				ready <- true
			}
		}
		ready <- false
	}()
	select {
	case is := <-ready:
		if !is {
			return fmt.Errorf("%s ended before it was ready", p.program)
		}
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s was not ready within 30 seconds", p.program)
	}
}

// Crash kills the program and starts it again on the same data.
func (p *Plane) Crash() error {
	if err := p.running.Process.Kill(); err != nil {
		return err
	}
	p.running.Wait()
	return p.run()
}

// How to reach it, as an administrator.
func (p *Plane) config() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", filepath.Join(p.directory, "admin.kubeconfig"))
}

// Stop ends the program in order and removes its data.
func (p *Plane) Stop() {
	p.running.Process.Signal(syscall.SIGTERM)
	p.running.Wait()
	os.RemoveAll(p.directory)
}
