// Package schema holds the published JSON Schemas (draft 2020-12) of the job contract: of the spec that goes in and of
// the events that come out. The files are generated from the Go types of package job and embedded, so that a program can
// print or serve exactly what it was built with. Nothing in here validates: package job is the judge, and refuses more
// than a schema can say.
package schema

import _ "embed"

//go:generate go run ../internal/schemagen -root ..

//go:embed job.schema.json
var job string

//go:embed event.schema.json
var event string

// Job returns the JSON Schema of a job spec. The slice is the caller's.
func Job() []byte { return []byte(job) }

// Event returns the JSON Schema of one event. The slice is the caller's.
func Event() []byte { return []byte(event) }
