package kernel_test

import (
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/job/jobtest"
)

func TestTheRuntimeInThisProcessPassesTheSuite(t *testing.T) {
	t.Parallel()
	jobtest.Exercise(t, jobtest.Setup{New: func() job.Runtime { return newRuntime(t, nil) }})
}
