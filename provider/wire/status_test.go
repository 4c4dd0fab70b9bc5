package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/llm"
)

func TestDetailsTellAPassingLimitFromASpentQuota(t *testing.T) {
	t.Parallel()
	const quota = "You exceeded your current quota, please check your plan and billing details."
	report := func(code, status, message, details string) string {
		return `{"error":{"code":` + code + `,"message":"` + message + `","status":"` + status + `","details":` + details + `}}`
	}
	retry := func(delay string) string {
		return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + delay + `}`
	}
	violation := func(id string) string {
		return `{"violations":[{"quotaMetric":"m"},{"quotaId":"` + id + `","quotaDimensions":{"quotaId":"PerDay"}}],"@type":"type.googleapis.com/google.rpc.QuotaFailure"}`
	}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		class  llm.Class
		wait   time.Duration
	}{
		{"for a minute", 429, report("429", "RESOURCE_EXHAUSTED", quota, "["+violation("GenerateRequestsPerMinutePerProject")+","+retry(`"8.5s"`)+"]"),
			llm.ClassRateLimit, 8500 * time.Millisecond},
		{"for a day, whatever wait is asked for", 429, report("429", "RESOURCE_EXHAUSTED", quota, "["+retry(`"22s"`)+","+violation("GenerateRequestsPerDayPerProject")+"]"),
			llm.ClassQuota, 22 * time.Second},
		{"without details", 429, report("429", "RESOURCE_EXHAUSTED", quota, "[]"), llm.ClassQuota, 0},
		{"without details and without a plan", 429, report("429", "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", "null"), llm.ClassRateLimit, 0},
		{"in a list", 429, "[" + report("429", "RESOURCE_EXHAUSTED", quota, "["+retry(`"8s"`)+"]") + "]", llm.ClassRateLimit, 8 * time.Second},
		{"a wait that is none", 429, report("429", "RESOURCE_EXHAUSTED", "slow down", "["+retry(`"soon"`)+","+retry("7")+","+retry("{}")+",1,null]"), llm.ClassRateLimit, 0},
		{"details of another server", 429, report("429", "x", "slow down", `{"retryDelay":"9s"}`), llm.ClassRateLimit, 0},
		{"an invalid key", 400, report("400", "INVALID_ARGUMENT", "API key not valid.", `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]`), llm.ClassAuth, 0},
		{"another reason", 400, report("400", "INVALID_ARGUMENT", "Bad field.", `[{"reason":"FIELD_INVALID"}]`), llm.ClassInvalidRequest, 0},
		{"overloaded", 503, report("503", "UNAVAILABLE", "The model is overloaded.", "["+retry(`"2s"`)+"]"), llm.ClassOverloaded, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := StatusError(tt.status, http.Header{}, []byte(tt.body), time.Time{})
			if e.Class != tt.class || e.RetryAfter != tt.wait || e.Retryable() != tt.class.Retryable() {
				t.Errorf("class %s, wait %s; want %s and %s", e.Class, e.RetryAfter, tt.class, tt.wait)
			}
			if e := StreamError([]byte(tt.body)); e.Class != tt.class || e.RetryAfter != tt.wait {
				t.Errorf("in a stream: class %s, wait %s; want %s and %s", e.Class, e.RetryAfter, tt.class, tt.wait)
			}
		})
	}
	e := StatusError(429, http.Header{"Retry-After": {"3"}}, []byte(report("429", "x", quota, "["+retry(`"8s"`)+"]")), time.Time{})
	if e.RetryAfter != 3*time.Second || e.Code != "x" || !strings.Contains(e.Message, "exceeded") {
		t.Errorf("wait %s, code %s, message %q; the header goes first, and the word for a code", e.RetryAfter, e.Code, e.Message)
	}
}
