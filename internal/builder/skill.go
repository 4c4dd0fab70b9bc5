package builder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// SkillSummary is a shared skill as a list shows it.
type SkillSummary struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	BuiltIn     bool   `json:"builtIn"`
	// Revision changes with every change; what the release brings has revision 0.
	Revision  int64     `json:"revision"`
	Author    string    `json:"author,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// SharedSkill is a shared skill in full.
type SharedSkill struct {
	SkillSummary
	Content string `json:"content"`
	// File is the skill's file as it was given.
	File string `json:"file"`
	// UsedBy are the agents of the tenant whose current version names the skill.
	UsedBy []string `json:"usedBy"`
}

// InUse is the error of deleting a skill that agents need. It matches store.ErrInUse.
type InUse struct {
	Skill string
	// Agents name the skill in their current version, by name.
	Agents []string
}

// Error implements error.
func (u *InUse) Error() string {
	return fmt.Sprintf("the skill %q is used by %s", u.Skill, strings.Join(u.Agents, ", "))
}

// Is makes the error one of package store.
func (u *InUse) Is(target error) bool { return target == store.ErrInUse }

// Skills returns the shared skills of the release and then those of the tenant, by name.
func (s *Service) Skills(ctx context.Context, tenant string) ([]SkillSummary, error) {
	rows, err := listSkills(ctx, s.db, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the skills: %w", err)
	}
	skills := []SkillSummary{}
	for _, k := range s.config.BuiltIn.Skills {
		skills = append(skills, SkillSummary{Name: k.Name, Description: k.Description, BuiltIn: true})
	}
	for _, r := range rows {
		if s.config.BuiltIn.Skill(r.name) == nil {
			skills = append(skills, r.skill().SkillSummary)
		}
	}
	return skills, nil
}

func (r skillRow) skill() *SharedSkill {
	parsed, _ := catalog.ParseSkill(r.name, []byte(r.file)) // checked when it was saved
	return &SharedSkill{SkillSummary: SkillSummary{Name: r.name, Description: parsed.Description, Revision: r.revision, Author: r.author,
		CreatedAt: r.createdAt, UpdatedAt: r.updatedAt}, Content: parsed.Content, File: r.file, UsedBy: []string{}}
}

// Skill returns one shared skill. It is store.ErrNotFound for a name that nobody has.
func (s *Service) Skill(ctx context.Context, tenant, name string) (*SharedSkill, error) {
	if k := s.config.BuiltIn.Skill(name); k != nil {
		skill := &SharedSkill{SkillSummary: SkillSummary{Name: k.Name, Description: k.Description, BuiltIn: true}, Content: k.Content, File: string(k.File)}
		var err error
		skill.UsedBy, err = s.builtInUsers(ctx, tenant, name)
		return skill, err
	}
	r, err := skillByName(ctx, s.db, tenant, name)
	if err != nil {
		return nil, err
	}
	skill := r.skill()
	skill.UsedBy, err = usersOf(ctx, s.db, tenant, name)
	return skill, err
}

// builtInUsers finds the agents that name a skill of the release, which no table knows.
func (s *Service) builtInUsers(ctx context.Context, tenant, name string) ([]string, error) {
	users := []string{}
	for _, a := range s.config.BuiltIn.Agents {
		if slices.Contains(a.Package.SharedSkillNames(), name) {
			users = append(users, a.Package.Name)
		}
	}
	rows, err := listAgents(ctx, s.db, tenant)
	for _, r := range rows {
		if pkg, _ := catalog.ParsePackage(r.version.Files); pkg != nil && slices.Contains(pkg.SharedSkillNames(), name) {
			users = append(users, r.name)
		}
	}
	return users, err
}

// checkSkill parses a skill's file.
func (s *Service) checkSkill(name, file string) problem.List {
	_, problems := catalog.ParseSkill(name, []byte(file))
	if s.config.BuiltIn.Skill(name) != nil {
		problems.AddHint(catalog.CodeNameReserved, "/name", "choose another name", "the name %q is that of a skill of the release", name)
	}
	return problems
}

// CreateSkill keeps a new shared skill, given as the file SKILL.md. Errors are a *problem.Error of kind Invalid with every
// problem and store.ErrExists.
func (s *Service) CreateSkill(ctx context.Context, tenant, name, file, author string) (*SharedSkill, error) {
	if err := s.checkSkill(name, file).Err("save the skill"); err != nil {
		return nil, err
	}
	var r skillRow
	err := s.db.Write(ctx, func(tx *store.Tx) (err error) {
		r, err = s.insertSkill(ctx, tx, tenant, name, file, author)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.skill(), nil
}

func (s *Service) insertSkill(ctx context.Context, tx *store.Tx, tenant, name, file, author string) (skillRow, error) {
	revision, err := nextRevision(ctx, tx, tenant, kindSkill, name)
	if err != nil {
		return skillRow{}, err
	}
	now := s.moment()
	r := skillRow{name: name, file: file, author: author, revision: revision, createdAt: now, updatedAt: now}
	return r, insertSkill(ctx, tx, tenant, r)
}

// SaveSkill replaces a shared skill. Every agent that names it has the new text in its next job; no agent gets a new
// version. Errors are a *problem.Error of kind Invalid, ErrBuiltIn, store.ErrNotFound and store.ErrStale.
func (s *Service) SaveSkill(ctx context.Context, tenant, name, file, author string, base int64) (*SharedSkill, error) {
	if s.config.BuiltIn.Skill(name) != nil {
		return nil, ErrBuiltIn
	}
	if _, err := skillByName(ctx, s.db, tenant, name); err != nil {
		return nil, err
	}
	if err := s.checkSkill(name, file).Err("save the skill"); err != nil {
		return nil, err
	}
	var r skillRow
	err := s.db.Write(ctx, func(tx *store.Tx) (err error) {
		if r, err = skillByName(ctx, tx, tenant, name); err != nil {
			return err
		}
		r.file, r.author, r.updatedAt = file, author, s.moment()
		if r.revision, err = nextRevision(ctx, tx, tenant, kindSkill, name); err != nil {
			return err
		}
		return updateSkill(ctx, tx, tenant, r, base)
	})
	if err != nil {
		return nil, err
	}
	return s.Skill(ctx, tenant, name)
}

// DeleteSkill removes a shared skill that no agent needs. Errors are *InUse, ErrBuiltIn, store.ErrNotFound and
// store.ErrStale.
func (s *Service) DeleteSkill(ctx context.Context, tenant, name string, base int64) error {
	if s.config.BuiltIn.Skill(name) != nil {
		return ErrBuiltIn
	}
	var users []string
	err := s.db.Write(ctx, func(tx *store.Tx) (err error) {
		if _, err = skillByName(ctx, tx, tenant, name); err != nil {
			return err
		}
		if users, err = usersOf(ctx, tx, tenant, name); err != nil {
			return err
		}
		if len(users) > 0 {
			return &InUse{name, users}
		}
		return deleteSkill(ctx, tx, tenant, name, base)
	})
	if _, told := errors.AsType[*InUse](err); !told && errors.Is(err, store.ErrInUse) {
		// An agent that names the skill was saved in between.
		if users, listed := usersOf(ctx, s.db, tenant, name); listed == nil {
			return &InUse{name, users}
		}
	}
	return err
}
