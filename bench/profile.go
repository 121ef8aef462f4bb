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

// profileSetting is the address for profiles of a product that is built with them;
// others ignore it.
const profileSetting = "MILLWRIGHT_PROFILE_ADDR"

// buildForProfiles builds the product with profiles and makes the bench measure that
// binary.
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

// profiled repeats a load and takes profiles of api and worker meanwhile. Without
// -profile it does nothing. Profiling costs time, so the repetition is not measured.
func (in *installation) profiled(ctx context.Context, name string, run func() error) error {
	if in.options.profile == "" {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, profiling := errgroup.WithContext(ctx)
	for program, p := range map[string]*process{"api": in.api, "worker": in.worker} {
		if p == nil {
			continue
		}
		file := filepath.Join(in.options.profile, strings.NewReplacer(" ", "-", ",", "").Replace(name)+"-"+program)
		group.Go(func() error { return p.profile(profiling, file) })
	}
	if err := run(); err != nil {
		return err
	}
	return group.Wait()
}

// profileFor is how long a profile takes; its load lasts longer.
const profileFor = 5 * time.Second

// profile writes a CPU profile and an allocation profile of the process.
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
