package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// sharedFolders are where the cluster goes when its user cannot reach the
// folder it is meant for: the first of them there is.
var sharedFolders = []string{"/var/lib", "/var/tmp"}

// Place returns the root for the cluster that belongs to dir, an existing
// folder with an absolute path. That is a folder below dir, unless Postgres
// must run as a user who cannot get there, as below root's own folder; then it
// is one with a name made from dir, so that it is found again.
func Place(dir string) (string, error) {
	root := filepath.Join(dir, "postgres")
	owner, err := ownerOf(root)
	if err != nil {
		return "", err
	}
	if owner.credential == nil || owner.Reaches(dir) {
		return root, nil
	}
	for _, shared := range sharedFolders {
		if owner.Reaches(shared) {
			return placeFor(shared, dir), nil
		}
	}
	return "", fmt.Errorf("the user %s, whom Postgres runs as, can reach neither %s nor any of %v", owner.Name, dir, sharedFolders)
}

func placeFor(shared, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(shared, "millwright-dev-"+hex.EncodeToString(sum[:6]))
}

// Discard removes a cluster with its data, if there is one.
func Discard(ctx context.Context, root string) error {
	if exists(root) {
		if err := reclaim(ctx, dataDir(root)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("the data of an earlier run could not be removed: %w", err)
	}
	return nil
}
