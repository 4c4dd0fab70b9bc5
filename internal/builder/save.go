package builder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// Draft is a package that somebody wrote.
type Draft struct {
	Files Files
	// Note says what changed, Author who changed it; both may be empty.
	Note, Author string
}

// maxNote counts characters.
const maxNote = 2000

// CodeNoteInvalid is the code of a note that is too long or no text.
const CodeNoteInvalid = "note-invalid"

// Saved is what a change made of an agent.
type Saved struct {
	Name     string `json:"name"`
	Version  int64  `json:"version"`
	Revision int64  `json:"revision"`
	// Remarks are no problems: a number in the file that the version could not have, for example.
	Remarks problem.List `json:"remarks"`
}

// Create keeps a new agent and makes its first version current. The name is that of the draft's agent file. Errors are a
// *problem.Error of kind Invalid with every problem and store.ErrExists.
func (s *Service) Create(ctx context.Context, tenant string, draft Draft) (*Saved, error) {
	prepared, err := s.prepare(ctx, tenant, "", draft)
	if err != nil {
		return nil, err
	}
	var saved *Saved
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		saved, err = s.insert(ctx, tx, tenant, prepared, 0)
		return err
	})
	return saved, s.skillGone(err)
}

// Save keeps a new version of an agent and makes it current. base is the revision that the draft is based on. Errors are a
// *problem.Error of kind Invalid with every problem, ErrBuiltIn, store.ErrNotFound and store.ErrStale.
func (s *Service) Save(ctx context.Context, tenant, name string, draft Draft, base int64) (*Saved, error) {
	if s.config.BuiltIn.Agent(name) != nil {
		return nil, ErrBuiltIn
	}
	if _, err := agentByName(ctx, s.db, tenant, name); err != nil {
		return nil, err // before its content is looked at
	}
	prepared, err := s.prepare(ctx, tenant, name, draft)
	if err != nil {
		return nil, err
	}
	var saved *Saved
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		saved, err = s.replace(ctx, tx, tenant, prepared, base, 0)
		return err
	})
	return saved, s.skillGone(err)
}

// prepared is a draft that passed every check.
type prepared struct {
	pkg     *catalog.Package
	version VersionFiles
	// uses are the tenant's skills that it names.
	uses []string
	now  time.Time
}

// prepare checks a draft. name is that of the agent to replace, "" for a new one.
func (s *Service) prepare(ctx context.Context, tenant, name string, draft Draft) (*prepared, error) {
	around, err := s.around(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return s.prepareIn(around, name, draft)
}

func (s *Service) prepareIn(around *around, name string, draft Draft) (*prepared, error) {
	pkg, problems := s.check(draft.Files, around)
	if pkg != nil && name != "" && pkg.Name != name && catalog.ValidName(pkg.Name) {
		problems.AddHint(catalog.CodeNameMismatch, "/name", "copy the agent to give it another name", "the package is that of %q and not of %q", pkg.Name, name)
	}
	if len([]rune(draft.Note)) > maxNote {
		problems.Add(CodeNoteInvalid, "/note", "the note has more than %d characters", maxNote)
	}
	if !utf8.ValidString(draft.Note) || strings.ContainsRune(draft.Note, 0) {
		problems.Add(CodeNoteInvalid, "/note", "the note is no text: it must be UTF-8 without NUL")
	}
	if err := problems.Err("save the agent"); err != nil {
		return nil, err
	}
	now := s.moment()
	version := VersionFiles{Version{Note: draft.Note, Author: draft.Author, Digest: packageDigest(pkg), CreatedAt: now, Current: true}, draft.Files}
	return &prepared{pkg: pkg, version: version, uses: around.ownOf(pkg), now: now}, nil
}

// insert keeps a new agent. wanted is the number that its version gets if no version has had it or a higher one.
func (s *Service) insert(ctx context.Context, tx *store.Tx, tenant string, p *prepared, wanted int64) (*Saved, error) {
	number, err := nextVersion(ctx, tx, tenant, p.pkg.Name, wanted)
	if err != nil {
		return nil, err
	}
	revision, err := nextRevision(ctx, tx, tenant, kindAgent, p.pkg.Name)
	if err != nil {
		return nil, err
	}
	if err := insertAgent(ctx, tx, tenant, p.pkg.Name, true, number, revision, p.now); err != nil {
		return nil, err
	}
	return s.keep(ctx, tx, tenant, p, number, revision)
}

// replace keeps a new version of an agent that has the revision base.
func (s *Service) replace(ctx context.Context, tx *store.Tx, tenant string, p *prepared, base, wanted int64) (*Saved, error) {
	number, err := nextVersion(ctx, tx, tenant, p.pkg.Name, wanted)
	if err != nil {
		return nil, err
	}
	r, err := agentByName(ctx, tx, tenant, p.pkg.Name)
	if err != nil {
		return nil, err
	}
	revision, err := nextRevision(ctx, tx, tenant, kindAgent, p.pkg.Name)
	if err != nil {
		return nil, err
	}
	r.version.Version.Version = number
	if err := updateAgent(ctx, tx, tenant, r, base, revision, p.now); err != nil {
		return nil, err
	}
	return s.keep(ctx, tx, tenant, p, number, revision)
}

// keep writes the version of an agent whose row is written.
func (s *Service) keep(ctx context.Context, tx *store.Tx, tenant string, p *prepared, number, revision int64) (*Saved, error) {
	version := p.version
	version.Version.Version = number
	if err := insertVersion(ctx, tx, tenant, p.pkg.Name, version); err != nil {
		return nil, err
	}
	saved := &Saved{Name: p.pkg.Name, Version: number, Revision: revision, Remarks: problem.List{}}
	if p.pkg.Version != 0 && p.pkg.Version != number {
		saved.Remarks.Add(CodeVersionKept, "/version", "the file says version %d and is kept as version %d: numbers are never used twice", p.pkg.Version, number)
	}
	return saved, writeUses(ctx, tx, tenant, p.pkg.Name, p.uses)
}

// errSkillGone is the error of a skill that was deleted between the check of a draft and its being kept.
var errSkillGone = errors.New("a shared skill that the agent names was deleted just now")

func (s *Service) skillGone(err error) error {
	if errors.Is(err, store.ErrInUse) {
		return problem.List{{Code: catalog.CodeSkillUnknown, Pointer: "/skills", Message: errSkillGone.Error()}}.Err("save the agent")
	}
	return err
}

// Restore makes an older version current again, if it passes every check as things are now. The history stays as it is,
// and the next version gets the next number. Errors are those of Save.
func (s *Service) Restore(ctx context.Context, tenant, name string, version, base int64) (*Saved, error) {
	if s.config.BuiltIn.Agent(name) != nil {
		return nil, ErrBuiltIn
	}
	old, err := versionOf(ctx, s.db, tenant, name, version)
	if err != nil {
		return nil, err
	}
	prepared, err := s.prepare(ctx, tenant, name, Draft{Files: old.Files})
	if err != nil {
		return nil, err
	}
	saved := &Saved{Name: name, Version: version, Remarks: problem.List{}}
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		r, err := agentByName(ctx, tx, tenant, name)
		if err != nil {
			return err
		}
		if saved.Revision, err = nextRevision(ctx, tx, tenant, kindAgent, name); err != nil {
			return err
		}
		r.version.Version.Version = version
		if err := updateAgent(ctx, tx, tenant, r, base, saved.Revision, prepared.now); err != nil {
			return err
		}
		return writeUses(ctx, tx, tenant, name, prepared.uses)
	})
	if err != nil {
		return nil, s.skillGone(err)
	}
	return saved, nil
}

// SetEnabled switches an agent on or off. It makes no version. Errors are ErrBuiltIn, store.ErrNotFound and store.ErrStale.
func (s *Service) SetEnabled(ctx context.Context, tenant, name string, enabled bool, base int64) (*Saved, error) {
	if s.config.BuiltIn.Agent(name) != nil {
		return nil, ErrBuiltIn
	}
	saved := &Saved{Name: name, Remarks: problem.List{}}
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		r, err := agentByName(ctx, tx, tenant, name)
		if err != nil {
			return err
		}
		if saved.Revision, err = nextRevision(ctx, tx, tenant, kindAgent, name); err != nil {
			return err
		}
		saved.Version, r.enabled = r.version.Version.Version, enabled
		return updateAgent(ctx, tx, tenant, r, base, saved.Revision, s.moment())
	})
	if err != nil {
		return nil, err
	}
	return saved, nil
}

// Delete removes an agent with its versions. Their numbers stay taken. Errors are ErrBuiltIn, store.ErrNotFound and
// store.ErrStale.
func (s *Service) Delete(ctx context.Context, tenant, name string, base int64) error {
	if s.config.BuiltIn.Agent(name) != nil {
		return ErrBuiltIn
	}
	return s.db.Write(ctx, func(tx *store.Tx) error {
		r, err := agentByName(ctx, tx, tenant, name)
		if err != nil {
			return err
		}
		// The row is written first, so that of two changes at once one is stale.
		revision, err := nextRevision(ctx, tx, tenant, kindAgent, name)
		if err != nil {
			return err
		}
		if err := updateAgent(ctx, tx, tenant, r, base, revision, s.moment()); err != nil {
			return err
		}
		return deleteAgent(ctx, tx, tenant, name)
	})
}

// CopyRequest asks for a copy of an agent.
type CopyRequest struct {
	// From is an agent of the release or of the tenant, Version one of its versions, 0 the current one.
	From    string
	Version int64
	// To is the name of the copy.
	To           string
	Note, Author string
}

// Copy makes an agent of the tenant out of another one. Errors are those of Create, and store.ErrNotFound.
func (s *Service) Copy(ctx context.Context, tenant string, request CopyRequest) (*Saved, error) {
	from, err := s.Version(ctx, tenant, request.From, request.Version)
	if err != nil {
		return nil, err
	}
	if !catalog.ValidName(request.To) {
		var problems problem.List
		problems.AddHint(catalog.CodeNameInvalid, "/name", "a name begins with a letter a-z and goes on with a-z, 0-9 or -, at most 64 characters",
			"invalid name %q", request.To)
		return nil, problems.Err("copy the agent")
	}
	files, err := renamed(from.Files, request.From, request.To)
	if err != nil {
		return nil, err
	}
	note := request.Note
	if note == "" {
		note = fmt.Sprintf("copy of %s, version %d", request.From, from.Version.Version)
	}
	return s.Create(ctx, tenant, Draft{Files: files, Note: note, Author: request.Author})
}

// renamed returns the files of a package under another name. All else stays as it was written, if the name stands on a line
// of its own; otherwise the package is written in canonical form.
func renamed(files Files, from, to string) (Files, error) {
	renamed := maps.Clone(files)
	delete(renamed, from+".md")
	lines := strings.Split(string(files[from+".md"]), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "name:") })
	if at >= 0 {
		end := ""
		if strings.HasSuffix(lines[at], "\r") {
			end = "\r"
		}
		lines[at] = "name: " + to + end
		renamed[to+".md"] = []byte(strings.Join(lines, "\n"))
		if pkg, problems := catalog.ParsePackage(renamed); len(problems) == 0 && pkg.Name == to {
			return renamed, nil
		}
	}
	pkg, problems := catalog.ParsePackage(files)
	if len(problems) > 0 {
		return nil, problems.Err("copy the agent " + strconv.Quote(from))
	}
	pkg.Name = to
	return pkg.Marshal(), nil
}
