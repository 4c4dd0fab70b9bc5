package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// Reason says why an agent cannot run.
type Reason string

// The closed set of reasons.
const (
	// ReasonUnknown is a name that nobody has, or a version that the agent does not have.
	ReasonUnknown Reason = "agent-unknown"
	// ReasonDisabled is an agent that somebody switched off.
	ReasonDisabled Reason = "agent-disabled"
	// ReasonMember is an agent for people's own tools.
	ReasonMember Reason = "agent-member"
	// ReasonInvalid is an agent that names something which is gone, or that this runtime refuses.
	ReasonInvalid Reason = "agent-invalid"
)

// Unresolved is the error of an agent that cannot run.
type Unresolved struct {
	Reason Reason
	// Agent and Version are what was asked for; Version is 0 for the current one.
	Agent   string
	Version int64
	// Problems say what is wrong with an invalid agent.
	Problems problem.List
}

// Error implements error.
func (u *Unresolved) Error() string {
	switch {
	case u.Reason == ReasonUnknown && u.Version != 0:
		return fmt.Sprintf("unknown agent: there is no version %d of %q", u.Version, u.Agent)
	case u.Reason == ReasonUnknown:
		return fmt.Sprintf("unknown agent %q", u.Agent)
	case u.Reason == ReasonDisabled:
		return fmt.Sprintf("the agent %q is switched off", u.Agent)
	case u.Reason == ReasonMember:
		return fmt.Sprintf("the agent %q is meant for people's own tools (audience member) and does not run as a job", u.Agent)
	}
	return fmt.Sprintf("the agent %q is invalid: %v", u.Agent, u.Problems)
}

// Resolved is an agent, frozen for one job: nothing that is saved later changes it.
type Resolved struct {
	Name    string
	Version int64
	BuiltIn bool
	// Job is the agent's part of a job, with the contents of its skills. It belongs to the caller.
	Job *catalog.Job
	// Digest is the identity of Job, the SHA-256 of its JSON in hex.
	Digest string
}

// Resolve returns what a job that starts now gets under a name: the agent of the release, else the tenant's one, in its
// current version or in the one that is asked for. It is the only way from a name to a definition. An agent that cannot
// run is an *Unresolved with one of four reasons; any other error is one of the database.
func (s *Service) Resolve(ctx context.Context, tenant, name string, version int64) (*Resolved, error) {
	found, err := s.find(ctx, tenant, name, version)
	if err != nil {
		return nil, err
	}
	if !found.enabled {
		return nil, &Unresolved{Reason: ReasonDisabled, Agent: name, Version: version}
	}
	return s.freeze(ctx, tenant, found, version)
}

// Definition is Resolve for people who look: an agent that is switched off has a definition, and one for people's own
// tools is ErrMember.
func (s *Service) Definition(ctx context.Context, tenant, name string, version int64) (*Resolved, error) {
	found, err := s.find(ctx, tenant, name, version)
	if unresolved, ok := errors.AsType[*Unresolved](err); ok && unresolved.Reason == ReasonUnknown {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	resolved, err := s.freeze(ctx, tenant, found, version)
	if unresolved, ok := errors.AsType[*Unresolved](err); ok && unresolved.Reason == ReasonMember {
		return nil, ErrMember
	}
	return resolved, err
}

// stored is a version of an agent and whether the agent is on.
type stored struct {
	name    string
	builtIn bool
	enabled bool
	version VersionFiles
}

func (s *Service) find(ctx context.Context, tenant, name string, version int64) (*stored, error) {
	unknown := &Unresolved{Reason: ReasonUnknown, Agent: name, Version: version}
	if agent := s.config.BuiltIn.Agent(name); agent != nil {
		v := builtInVersion(agent)
		if version != 0 && version != v.Version.Version {
			return nil, unknown
		}
		return &stored{name, true, true, v}, nil
	}
	r, err := agentByName(ctx, s.db, tenant, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &Unresolved{Reason: ReasonUnknown, Agent: name}
	}
	if err != nil {
		return nil, fmt.Errorf("look up the agent %q: %w", name, err)
	}
	found := &stored{name, false, r.enabled, r.version}
	if version != 0 && version != r.version.Version.Version {
		found.version, err = versionOf(ctx, s.db, tenant, name, version)
		if errors.Is(err, store.ErrNotFound) {
			return nil, unknown
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look up the agent %q: %w", name, err)
	}
	return found, nil
}

// freeze makes the job of a version as everything around it is now.
func (s *Service) freeze(ctx context.Context, tenant string, found *stored, asked int64) (*Resolved, error) {
	around, err := s.around(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if found.builtIn {
		around = around.release()
	}
	pkg, problems := s.check(found.version.Files, around)
	switch {
	case len(problems) > 0:
		return nil, &Unresolved{Reason: ReasonInvalid, Agent: found.name, Version: asked, Problems: problems}
	case pkg.Audience == catalog.AudienceMember:
		return nil, &Unresolved{Reason: ReasonMember, Agent: found.name, Version: asked}
	}
	pkg.Version = found.version.Version.Version
	compiled, problems := pkg.CompileWith(around.shared)
	if len(problems) > 0 {
		return nil, &Unresolved{Reason: ReasonInvalid, Agent: found.name, Version: asked, Problems: problems}
	}
	data, err := json.Marshal(compiled)
	if err != nil {
		return nil, fmt.Errorf("write the agent %q as JSON: %w", found.name, err)
	}
	sum := sha256.Sum256(data)
	return &Resolved{Name: found.name, Version: pkg.Version, BuiltIn: found.builtIn, Job: compiled, Digest: hex.EncodeToString(sum[:])}, nil
}
