package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// Owner is the user a cluster belongs to and runs as.
type Owner struct {
	Name     string
	uid, gid int
	// credential is nil when it is the user who runs the stack.
	credential *syscall.Credential
}

// unprivileged are the users root's clusters may belong to, best first.
var unprivileged = []string{"postgres", "nobody"}

// ownerOf finds the user for the cluster below root: who runs the stack, or,
// when that is the superuser, the owner of the data there is, or an
// unprivileged user.
func ownerOf(root string) (Owner, error) {
	if os.Geteuid() != 0 {
		return current(), nil
	}
	if info, err := os.Stat(dataDir(root)); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			return other(int(stat.Uid), int(stat.Gid)), nil
		}
	}
	return Unprivileged()
}

// Unprivileged returns the user root's new clusters belong to; for anyone else
// that is the user itself.
func Unprivileged() (Owner, error) {
	if os.Geteuid() != 0 {
		return current(), nil
	}
	for _, name := range unprivileged {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr != nil || gidErr != nil || uid <= 0 {
			continue
		}
		return other(uid, gid), nil
	}
	return Owner{}, errors.New("Postgres refuses to run as root, and there is neither a user postgres nor a user nobody it could run as")
}

// current is the user who runs the stack.
func current() Owner {
	return Owner{Name: nameOf(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}
}

func other(uid, gid int) Owner {
	return Owner{
		Name: nameOf(uid), uid: uid, gid: gid,
		credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
	}
}

func nameOf(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// command prepares a program to run as the owner, with an environment in which
// nothing points Postgres elsewhere.
func (o Owner) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	// The folder the stack was started in may be closed to the owner.
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential}
	return cmd
}

// Reaches reports whether the owner can enter the folder. It asks the system
// instead of computing it from modes, which know nothing of access lists.
func (o Owner) Reaches(dir string) bool {
	return o.command("/bin/sh", "-c", `cd -- "$1"`, "sh", dir).Run() == nil
}

// makeFolder makes a folder only the owner may enter. One that exists is taken
// if it is the owner's: in a folder everyone may write to, someone else could
// have put it there.
func (o Owner) makeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return o.own(path)
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the folder for Postgres could not be made: %w", err)
	}
	if !belongsTo(path, o.uid) {
		return fmt.Errorf("%s is in the way: it is not a folder of the user %s (remove it, or run as the user it belongs to)", path, o.Name)
	}
	return os.Chmod(path, 0o700)
}

func (o Owner) own(path string) error {
	if o.credential == nil {
		return nil
	}
	if err := os.Lchown(path, o.uid, o.gid); err != nil {
		return fmt.Errorf("%s could not be given to the user %s: %w", path, o.Name, err)
	}
	return nil
}

// belongsTo reports whether the path is a folder, no link, of the user.
func belongsTo(path string, uid int) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
