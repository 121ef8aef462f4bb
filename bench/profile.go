package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// profileSetting is where a product that is built for profiles serves them; any other ignores it.
const profileSetting = "MILLWRIGHT_PROFILE_ADDR"

// buildForProfiles builds the product with its profiles and has the bench measure that.
func (o *options) buildForProfiles(ctx context.Context) error {
	if o.profile == "" {
		return nil
	}
	if err := os.MkdirAll(o.profile, 0o750); err != nil {
		return err
	}
	o.binary = filepath.Join(o.profile, "millwright")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "profile", "-o", o.binary, "./cmd/millwright")
	build.Stderr = os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the product with profiles: %w", err)
	}
	return nil
}

// profiled runs a load once more and takes profiles of api and worker
// meanwhile. Without -profile it does nothing: profiling costs time, so it is
// kept apart from what is measured.
func (in *installation) profiled(ctx context.Context, name string, run func() error) error {
	if in.options.profile == "" {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, taking := errgroup.WithContext(ctx)
	for program, p := range map[string]*process{"api": in.api, "worker": in.worker} {
		if p == nil {
			continue
		}
		file := filepath.Join(in.options.profile, strings.NewReplacer(" ", "-", ",", "").Replace(name)+"-"+program)
		group.Go(func() error { return p.profile(taking, file) })
	}
	if err := run(); err != nil {
		return err
	}
	return group.Wait()
}

// profileFor is how long a profile is taken; the load it is taken of lasts longer.
const profileFor = 5 * time.Second

// profile takes a profile of what the process does for a while, and of what it allocates.
func (p *process) profile(ctx context.Context, file string) error {
	group, ctx := errgroup.WithContext(ctx)
	for path, name := range map[string]string{"profile": "cpu", "allocs": "allocs"} {
		group.Go(func() error {
			body, err := fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%.0f", p.profiles, path, profileFor.Seconds()))
			if err != nil {
				return err
			}
			return os.WriteFile(file+"-"+name+".pprof", body, 0o600)
		})
	}
	return group.Wait()
}
