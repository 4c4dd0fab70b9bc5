package jobproc_test

import (
	"context"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/job/jobtest"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
)

func TestExercise(t *testing.T) {
	t.Parallel()
	jobtest.Exercise(t, jobtest.Setup{New: func() job.Runtime { return newRuntime(t, jobproc.Config{}) }})
}

// eitherRuntime runs the jobs of newSpec with the fake and all others with the kernel.
type eitherRuntime struct{ fake fakeRuntime }

func (e eitherRuntime) Start(ctx context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	if _, fake := spec.Providers["p"]; fake || len(spec.Providers) == 0 && spec.APIVersion == "" {
		return e.fake.Start(ctx, spec, ports)
	}
	tools, err := tool.NewRegistry()
	if err != nil {
		return nil, err
	}
	rt, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New},
		Models:   func(string, string, string) (llm.Model, bool) { return llm.Model{}, false },
		Tools:    tools,
	})
	if err != nil {
		return nil, err
	}
	return rt.Start(ctx, spec, ports)
}
