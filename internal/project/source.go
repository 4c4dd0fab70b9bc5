package project

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// Kind is the kind of a source.
type Kind string

// The kinds of sources.
const (
	// Directory is a directory of the server; a run works on a snapshot of what it holds when the run starts.
	Directory Kind = "directory"
	// Git is a repository; a run works on one commit of it.
	Git Kind = "git"
)

const (
	maxSources  = 100
	maxLocation = 4096
	maxExclude  = 100
)

// Source is what the runs of a project read.
type Source struct {
	// Name is the directory below source/ that a run finds it in. It matches [a-z0-9][a-z0-9._-]{0,62}.
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Location is an absolute path, or the address of a repository: https, ssh, or the path of one.
	Location string `json:"location"`
	// Ref is the branch, the tag or the commit of a repository; "" is its default branch.
	Ref string `json:"ref,omitempty"`
	// Exclude lists patterns of what is left out of a directory, with ** for any directories; nil leaves out ".git", an
	// empty list nothing.
	Exclude []string `json:"exclude"`
	// HasCredential says that there is one.
	HasCredential bool      `json:"hasCredential"`
	Version       int64     `json:"version"`
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"`

	sealed string
}

// DefaultExclude is what is left out of a directory whose source names nothing.
func DefaultExclude() []string { return []string{"**/.git"} }

// SourceDraft is a new source, or all of a changed one.
type SourceDraft struct {
	Kind     Kind     `json:"kind"`
	Location string   `json:"location"`
	Ref      string   `json:"ref,omitempty"`
	Exclude  []string `json:"exclude,omitempty"`
	// Credential is "user:password" or a token for https, a private key in PEM for ssh. In a change an empty one keeps what
	// there is, unless the location changes.
	Credential secret.Value `json:"-"`
	// RemoveCredential removes it although none is given.
	RemoveCredential bool `json:"removeCredential,omitempty"`
}

// IsSourceName reports whether a name may be that of a source.
func IsSourceName(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" && strings.Trim(name[:1], "._-") != ""
}

// PutSource adds a source, with version 0, or changes one whose current version is the one given. Errors are *problem.Error
// of kind Invalid, store.ErrExists, store.ErrStale, and store.ErrNotFound for a project that is not the tenant's.
func (s *Service) PutSource(ctx context.Context, tenant, project, name string, version int64, draft SourceDraft) (Source, error) {
	if err := s.checkSource(name, draft).Err("set the source"); err != nil {
		return Source{}, err
	}
	var source Source
	err := s.db.Write(ctx, func(tx *store.Tx) (err error) {
		if _, err := findProject(ctx, tx, tenant, project); err != nil {
			return err
		}
		if version == 0 {
			source, err = s.addSource(ctx, tx, tenant, project, name, draft)
		} else {
			source, err = s.changeSource(ctx, tx, tenant, project, name, version, draft)
		}
		return err
	})
	return source, err
}

func (s *Service) addSource(ctx context.Context, tx *store.Tx, tenant, project, name string, draft SourceDraft) (Source, error) {
	all, err := listSources(ctx, tx, tenant, project)
	if err != nil {
		return Source{}, err
	}
	if len(all) >= maxSources {
		var problems problem.List
		problems.Add("too-many", "", "the project has %d sources; more are not possible", maxSources)
		return Source{}, problems.Err("set the source")
	}
	now := s.time()
	source := Source{Name: name, Version: 1, CreatedAt: now, UpdatedAt: now}
	if err := s.apply(&source, tenant, project, draft); err != nil {
		return Source{}, err
	}
	return source, insertSource(ctx, tx, tenant, project, source)
}

func (s *Service) changeSource(ctx context.Context, tx *store.Tx, tenant, project, name string, version int64, draft SourceDraft) (Source, error) {
	source, err := findSource(ctx, tx, tenant, project, name)
	if err != nil {
		return Source{}, err
	}
	if source.Version != version {
		return Source{}, store.ErrStale
	}
	source.UpdatedAt = s.time()
	if err := s.apply(&source, tenant, project, draft); err != nil {
		return Source{}, err
	}
	return source, updateSource(ctx, tx, tenant, project, &source)
}

// apply makes the source what the draft says. A credential never goes to another address than the one it was given for.
func (s *Service) apply(source *Source, tenant, project string, draft SourceDraft) error {
	if draft.RemoveCredential || draft.Kind != Git || source.Location != draft.Location {
		source.sealed = ""
	}
	if !draft.Credential.Empty() {
		if s.config.Keys == nil {
			return fmt.Errorf("keep the credential of a source: there is no key ring")
		}
		sealed, err := s.config.Keys.Seal(place(tenant, project, source.Name), draft.Credential)
		if err != nil {
			return fmt.Errorf("keep the credential of a source: %w", err)
		}
		source.sealed = sealed
	}
	source.Kind, source.Location, source.Ref, source.Exclude = draft.Kind, draft.Location, draft.Ref, draft.Exclude
	if source.Kind == Directory {
		source.Location = filepath.Clean(source.Location)
		if source.Exclude == nil {
			source.Exclude = DefaultExclude()
		}
	}
	if source.Exclude == nil {
		source.Exclude = []string{}
	}
	source.HasCredential = source.sealed != ""
	return nil
}

func place(tenant, project, name string) secret.Place {
	return secret.Place{Tenant: tenant, Table: "sources", ID: project + "/" + name, Field: "credential"}
}

// Sources returns the sources of a project in the order of their names.
func (s *Service) Sources(ctx context.Context, tenant, project string) ([]Source, error) {
	if _, err := findProject(ctx, s.db, tenant, project); err != nil {
		return nil, err
	}
	return listSources(ctx, s.db, tenant, project)
}

// Source returns a source of a project.
func (s *Service) Source(ctx context.Context, tenant, project, name string) (Source, error) {
	return findSource(ctx, s.db, tenant, project, name)
}

// Credential opens the credential of a source for whoever fetches from it, the empty one if it has none.
func (s *Service) Credential(ctx context.Context, tenant, project, name string) (secret.Value, error) {
	source, err := findSource(ctx, s.db, tenant, project, name)
	if err != nil || source.sealed == "" {
		return secret.Value{}, err
	}
	if s.config.Keys == nil {
		return secret.Value{}, fmt.Errorf("open the credential of the source %q: there is no key ring", name)
	}
	return s.config.Keys.Open(place(tenant, project, name), source.sealed)
}

// DeleteSource removes a source whose current version is the one given. One that outputs are committed to is store.ErrInUse.
func (s *Service) DeleteSource(ctx context.Context, tenant, project, name string, version int64) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		source, err := findSource(ctx, tx, tenant, project, name)
		if err != nil {
			return err
		}
		if source.Version != version {
			return store.ErrStale
		}
		p, err := findProject(ctx, tx, tenant, project)
		if err != nil {
			return err
		}
		if c := p.Settings.Commit; c != nil && c.Source == name {
			return fmt.Errorf("outputs are committed to the source %q: %w", name, store.ErrInUse)
		}
		return deleteSource(ctx, tx, tenant, project, source)
	})
}

// Reseal seals every credential again that was not sealed with the newest key, and returns how many.
func (s *Service) Reseal(ctx context.Context) (n int, err error) {
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		n = 0
		rows, err := sealedSources(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if s.config.Keys == nil || !s.config.Keys.Stale(r.sealed) {
				continue
			}
			at := place(r.tenant, r.project, r.name)
			value, err := s.config.Keys.Open(at, r.sealed)
			if err != nil {
				return err
			}
			if r.sealed, err = s.config.Keys.Seal(at, value); err != nil {
				return err
			}
			if err := r.save(ctx, tx); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// checkSource lists everything that is wrong with a source.
func (s *Service) checkSource(name string, d SourceDraft) problem.List {
	var problems problem.List
	if !IsSourceName(name) {
		problems.AddHint("invalid", "/name", "it becomes a directory: small letters, digits, dots, hyphens and underscores, at most 63", "%q is no name of a source", name)
	}
	if len(d.Location) > maxLocation || d.Location == "" || strings.ContainsFunc(d.Location, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		problems.Add("invalid", "/location", "must have 1 to %d bytes on one line", maxLocation)
		return problems
	}
	switch d.Kind {
	case Directory:
		s.checkDirectory(&problems, d)
	case Git:
		s.checkGit(&problems, d)
	default:
		problems.AddHint("unknown", "/kind", `known: "directory", "git"`, "unknown kind %q", d.Kind)
	}
	return problems
}

func (s *Service) checkDirectory(problems *problem.List, d SourceDraft) {
	s.checkPath(problems, d.Location)
	if d.Ref != "" {
		problems.Add("not-possible", "/ref", "a directory has no branches")
	}
	if !d.Credential.Empty() {
		problems.Add("not-possible", "/credential", "a directory needs no credential")
	}
	if len(d.Exclude) > maxExclude {
		problems.Add("too-many", "/exclude", "there are %d patterns, more than %d", len(d.Exclude), maxExclude)
	}
	for i, pattern := range d.Exclude {
		if pattern == "" || len(pattern) > 1024 || !doublestar.ValidatePattern(pattern) {
			problems.Add("invalid", fmt.Sprintf("/exclude/%d", i), "%q is no pattern", pattern)
		}
	}
}

// checkPath refuses a path that is not below a directory that the operator has opened. Links are looked at when it is read.
func (s *Service) checkPath(problems *problem.List, location string) {
	if !filepath.IsAbs(location) {
		problems.Add("invalid", "/location", "%q is no absolute path", location)
		return
	}
	if !Below(s.config.Directories, location) {
		problems.AddHint("forbidden", "/location", "the operator of the server names the directories that may be read", "%q may not be read", location)
	}
}

// Below reports whether a path is one of the directories or below one. Nothing is looked up.
func Below(directories []string, location string) bool {
	return slices.ContainsFunc(directories, func(dir string) bool {
		rel, err := filepath.Rel(filepath.Clean(dir), filepath.Clean(location))
		return err == nil && filepath.IsLocal(rel)
	})
}

func (s *Service) checkGit(problems *problem.List, d SourceDraft) {
	if d.Exclude != nil {
		problems.Add("not-possible", "/exclude", "a commit is taken whole")
	}
	if why := refFault(d.Ref); d.Ref != "" && why != "" {
		problems.Add("invalid", "/ref", "%q %s", d.Ref, why)
	}
	if filepath.IsAbs(d.Location) {
		s.checkPath(problems, d.Location)
		if !d.Credential.Empty() {
			problems.Add("not-possible", "/credential", "a repository on this machine needs no credential")
		}
		return
	}
	u, err := url.Parse(d.Location)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.HasPrefix(u.Hostname(), "-") || strings.Trim(u.Path, "/") == "":
		problems.AddHint("invalid", "/location", "for example https://git.example.com/team/repository.git", "it is no address of a repository")
	case u.Scheme == "http" && !s.config.PlainHTTP:
		problems.Add("forbidden", "/location", "repositories over http, without encryption, are not permitted on this server")
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh":
		problems.AddHint("forbidden", "/location", "possible are https and ssh", "repositories cannot be fetched by %q", u.Scheme)
	case u.User != nil && (u.Scheme != "ssh" || hasPassword(u.User)):
		problems.AddHint("secret", "/location", "give it as credential, which is sealed", "the address holds a credential")
	case u.User != nil && strings.HasPrefix(u.User.Username(), "-"):
		problems.Add("invalid", "/location", "the name of the user begins with a hyphen")
	}
}

func hasPassword(u *url.Userinfo) bool {
	_, has := u.Password()
	return has
}

// refFault says why a text is no name of a branch, a tag or a commit (git-check-ref-format(1)), "" if it is one.
func refFault(ref string) string {
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }
	switch {
	case len(ref) > 250:
		return "is too long"
	case strings.HasPrefix(ref, "-"):
		return "begins with a hyphen"
	case strings.ContainsFunc(ref, bad), strings.Contains(ref, ".."), strings.Contains(ref, "@{"), strings.Contains(ref, "//"), ref == "@",
		strings.HasPrefix(ref, "/"), strings.HasSuffix(ref, "/"), strings.HasSuffix(ref, "."):
		return "is no name of a branch, a tag or a commit"
	}
	for part := range strings.SplitSeq(ref, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return "is no name of a branch, a tag or a commit"
		}
	}
	return ""
}

// isLocalPath reports whether a slash-separated path stays where it is and is no part of git.
func isLocalPath(p string) bool {
	if path.IsAbs(p) || path.Clean(p) != p || !filepath.IsLocal(p) || p == "." || strings.ContainsAny(p, "\\\x00") || len(p) > maxLocation {
		return false
	}
	return !slices.ContainsFunc(strings.Split(strings.ToLower(p), "/"), func(part string) bool { return part == ".git" })
}

// UnmarshalJSON reads a draft with its credential, which is never written.
func (d *SourceDraft) UnmarshalJSON(data []byte) error {
	type plain SourceDraft
	with := struct {
		*plain
		Credential string `json:"credential"`
	}{plain: (*plain)(d)}
	if err := json.Unmarshal(data, &with); err != nil {
		return err
	}
	d.Credential = secret.New(with.Credential)
	return nil
}
