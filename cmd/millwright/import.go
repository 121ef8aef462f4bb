package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/imports"
)

func importCommand() *cobra.Command {
	var out output
	var dryRun, overwrite bool
	cmd := &cobra.Command{
		Use:   "import FILE.yaml",
		Short: "Create or update one organization from a file and print its ids and new secrets as JSON",
		Long: `Create or update one organization from a file and print its ids and new secrets as JSON.
What the import created and changed is counted on standard error.

If the file would undo what a person or a command changed since the last import, nothing
is imported, and the command lists those changes. --dry-run shows every difference and
exits with status 0 if the import would succeed. --overwrite imports the file all the same.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			s, err := loadSettings()
			if err != nil {
				return err
			}
			text, err := readImportFile(ctx, args[0])
			if err != nil {
				return err
			}
			svc, pools, err := openService(ctx, s, "millwright import", requireSchema, nil)
			if err != nil {
				return err
			}
			defer pools.Close()
			if dryRun {
				return out.compare(cmd, svc, text, overwrite)
			}
			run := svc.Imports.Run
			if overwrite {
				run = svc.Imports.Overwrite
			}
			imported, err := run(ctx, text)
			if err != nil {
				return err
			}
			summarize(cmd.ErrOrStderr(), imported.Differences)
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(imported)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the differences without changing anything")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "undo what was changed since the last import")
	out.flag(cmd)
	return cmd
}

// readImportFile reads the file, no more of it than an import accepts. A pipe may keep
// it waiting until the context ends.
func readImportFile(ctx context.Context, path string) ([]byte, error) {
	var text []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		var file *os.File
		if file, err = os.Open(path); err == nil {
			defer file.Close()
			text, err = io.ReadAll(io.LimitReader(file, imports.MaxFile+1))
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return text, nil
}

// importComparison is what --dry-run --json prints.
type importComparison struct {
	// OrganizationID is nil if the import would create the organization.
	OrganizationID *string `json:"organization_id"`
	WouldSucceed   bool    `json:"would_succeed"`
	// Problems are what is wrong with the file.
	Problems    []string              `json:"problems"`
	Conflicts   int                   `json:"conflicts"`
	Differences []*imports.Difference `json:"differences"`
}

// compare shows what the import would do. It fails if the import would.
func (o *output) compare(cmd *cobra.Command, svc *service.Service, text []byte, overwrite bool) error {
	compared, err := svc.Imports.Compare(cmd.Context(), text)
	view := importComparison{Problems: []string{}, Differences: []*imports.Difference{}}
	if rejected, ok := errors.AsType[*imports.FileError](err); ok {
		if o.json {
			view.Problems = rejected.Problems
			return errors.Join(o.show(cmd, view, nil), err)
		}
		return err
	}
	if err != nil {
		return err
	}
	if compared.OrganizationID != "" {
		view.OrganizationID = &compared.OrganizationID
	}
	view.Differences = append(view.Differences, compared.Differences...)
	view.Conflicts = len(compared.Conflicts())
	if !overwrite && view.Conflicts > 0 {
		err = fmt.Errorf("the import would be rejected: %d of the %d differences undo what was changed since the last import; --overwrite imports them all the same",
			view.Conflicts, len(view.Differences))
	}
	view.WouldSucceed = err == nil
	return errors.Join(o.show(cmd, view, func(w io.Writer) { writeDifferences(w, view.Differences) }), err)
}

func writeDifferences(w io.Writer, differences []*imports.Difference) {
	if len(differences) == 0 {
		fmt.Fprint(w, "no differences\t\n")
		return
	}
	fmt.Fprint(w, "KIND\tKEY\tDIFFERENCE\tSTORED\tFILE\tSINCE THE LAST IMPORT\t\n")
	for _, d := range differences {
		difference, stored, given, since := d.Field, d.Stored(), d.Given(), ""
		switch {
		case d.Change == imports.Created && d.Conflict:
			since = "deleted"
		case d.Conflict:
			since = "changed"
		}
		if d.Change == imports.Created {
			difference, stored, given = imports.Created, "", ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", d.Kind, oneLine(d.Key), oneLine(difference), stored, given, since)
	}
}

// summarize counts what an import did, and lists what it undid.
func summarize(w io.Writer, differences []*imports.Difference) {
	if len(differences) == 0 {
		return
	}
	created := 0
	for _, d := range differences {
		if d.Change == imports.Created {
			created++
		}
	}
	fmt.Fprintf(w, "%d created, %d changed\n", created, len(differences)-created)
	for _, d := range differences {
		if d.Conflict {
			fmt.Fprintln(w, "overwritten:", d)
		}
	}
}
