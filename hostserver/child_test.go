package hostserver_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/problem"
)

// sockets returns a connection that a job process gets as it is.
func sockets(t *testing.T) (host, lent io.ReadWriteCloser) {
	t.Helper()
	host, lent, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	return host, lent
}

func pair() (host, lent io.ReadWriteCloser, err error) {
	a, b, err := jobproc.SocketPair()
	return a, b, err
}

// pipes returns a connection whose bytes are carried to the job process.
func pipes(t *testing.T) (host, lent io.ReadWriteCloser) {
	t.Helper()
	host, lent = net.Pipe()
	return host, lent
}

func bothKinds() map[string]func(*testing.T) (host, lent io.ReadWriteCloser) {
	return map[string]func(*testing.T) (host, lent io.ReadWriteCloser){"socket": sockets, "in memory": pipes}
}

// startChild starts a job process under the scope south.
func startChild(t *testing.T, o *office, connection func(*testing.T) (host, lent io.ReadWriteCloser), steps ...step) (*jobproc.Handle, *hostserver.Connection) {
	t.Helper()
	s := newServer(t, o)
	host, lent := connection(t)
	server, err := s.Connect(context.WithValue(t.Context(), scopeKey{}, scope{"south"}), host, everything(o, "job-1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	spec, err := specFor(s, o, steps...)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := jobproc.New(jobproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := rt.Start(t.Context(), spec, job.Ports{Host: lent})
	if err != nil {
		t.Fatal(err)
	}
	return h.(*jobproc.Handle), server
}

// said returns the texts of a job's messages.
func said(h job.Handle) []string {
	var texts []string
	for e := range h.Events() {
		if m, ok := e.Data.(*job.MessageData); ok {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

func TestAJobProcessCallsTheToolsOfItsHost(t *testing.T) {
	t.Parallel()
	for name, connection := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice()
			h, server := startChild(t, o, connection,
				step{"memory_search", `{"query":"boiler"}`}, step{"memory_search", `{"query":"roof"}`},
				step{"memory_write", `{"title":"t","text":"the cellar is dry","area":"north"}`}, step{"broken", `{}`},
				step{"web_search", `{"query":"roofs"}`})
			want := []string{
				`error=false {"notes":null}`, `error=false {"notes":["the roof leaks"]}`, "error=false kept in south",
				"error=true the tool broken failed inside; calling it again in the same way will not help",
				"error=false results for roofs, 2 searches remain",
			}
			if diff := cmp.Diff(want, said(h)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if outcome := h.Wait(); outcome.Completed == nil {
				t.Errorf("outcome: %+v", outcome.Failed)
			}
			if o.keys["job-1 3.0"] != 1 || len(o.keys) != 4 {
				t.Errorf("keys: %v", o.keys)
			}
			<-server.Done() // the connection ends with the job
		})
	}
}

func TestAnAbortOfAJobProcessReachesTheTool(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *jobproc.Handle){
		"aborted": func(h *jobproc.Handle) { h.Abort("enough") },
		"killed":  func(h *jobproc.Handle) { h.Kill() },
	} {
		for kind, connection := range bothKinds() {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				o := newOffice()
				h, server := startChild(t, o, connection, step{"slow", `{}`})
				<-o.entered
				end(h)
				if err := <-o.left; err == nil {
					t.Error("the context of the handler ended without a cause")
				}
				<-server.Done()
				h.Discard()
				if outcome := h.Wait(); outcome.Failed == nil || outcome.Failed.Reason != job.ReasonAborted {
					t.Errorf("outcome: %+v", outcome)
				}
			})
		}
	}
}

func TestAJobProcessOutlivesItsHost(t *testing.T) {
	t.Parallel()
	for name, connection := range bothKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice()
			h, server := startChild(t, o, connection, step{"slow", `{}`}, step{"web_search", `{"query":"a"}`})
			<-o.entered
			server.Close()
			texts := said(h)
			if len(texts) != 2 || !strings.Contains(texts[0], "connection to its host is lost") || !strings.Contains(texts[1], "connection to its host is lost") {
				t.Errorf("%q", texts)
			}
			if outcome := h.Wait(); outcome.Completed == nil {
				t.Errorf("outcome: %+v", outcome.Failed)
			}
		})
	}
}

func TestAHostIsClosedWhenTheJobDoesNotStart(t *testing.T) {
	t.Parallel()
	rt, err := jobproc.New(jobproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	missing, err := jobproc.New(jobproc.Config{Executable: "/nonexistent/hozo"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, connection := range bothKinds() {
		host, lent := connection(t)
		if _, err := rt.Start(t.Context(), &job.Spec{}, job.Ports{Host: lent}); problem.KindOf(err) != problem.Invalid {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := host.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the host of a refused job is open", kind)
		}
		host.Close()
		host, lent = connection(t)
		if _, err := missing.Start(t.Context(), &job.Spec{}, job.Ports{Host: lent}); problem.KindOf(err) != problem.Unavailable {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := host.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the host of a job without a process is open", kind)
		}
		host.Close()
	}
}

func TestOpenHostRefusesWhatIsNoSocketOfTheParent(t *testing.T) {
	t.Parallel()
	for _, fd := range []int{-1, 0, 2, 1 << 20} {
		if host, err := jobproc.OpenHost(fd); err == nil {
			t.Errorf("descriptor %d was opened as %v", fd, host)
		}
	}
}
