package wire

import "github.com/hozo-run/hozo/internal/project"

// SourceDraft is a new source of a project, or all of a changed one.
type SourceDraft struct {
	Kind     project.Kind `json:"kind" enum:"directory,git"`
	Location string       `json:"location" maxLength:"4096" doc:"An absolute path, or the address of a repository."`
	Ref      string       `json:"ref,omitempty" maxLength:"256" doc:"The branch, tag or commit of a repository; its default branch if absent."`
	Exclude  []string     `json:"exclude,omitempty" maxItems:"256" doc:"Patterns of what is left out of a directory."`
	// Credential is never returned.
	Credential       string `json:"credential,omitempty" maxLength:"65536" doc:"A token, user:password, or a private key; in a change an empty one keeps what there is."`
	RemoveCredential bool   `json:"removeCredential,omitempty"`
}
