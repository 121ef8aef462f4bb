package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// profileSetting is the address for profiles of a product that is built with them;
// others ignore it.
const profileSetting = "MILLWRIGHT_PROFILE_ADDR"

// profileFor is the duration of a profile; its load lasts longer.
const profileFor = 5 * time.Second

// profiled repeats a load and writes CPU and allocation profiles of api and worker, if
// -profile is set. Profiling costs time, so the repetition is not measured.
func (in *installation) profiled(name string, run func()) {
	if in.options.profile == "" {
		return
	}
	check(os.MkdirAll(in.options.profile, 0o750))
	group, ctx := errgroup.WithContext(in.ctx)
	for program, p := range map[string]*process{"api": in.api, "worker": in.worker} {
		for path, kind := range map[string]string{"profile": "cpu", "allocs": "allocs"} {
			if p == nil {
				continue
			}
			file := fmt.Sprintf("%s-%s-%s.pprof", strings.NewReplacer(" ", "-", ",", "").Replace(name), program, kind)
			group.Go(func() error {
				body, err := fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%.0f", p.profiles, path, profileFor.Seconds()))
				if err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(in.options.profile, file), body, 0o600)
			})
		}
	}
	run()
	check(group.Wait())
}
