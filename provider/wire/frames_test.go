package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
)

// readFrames returns every event of r and the error at its end.
func readFrames(r io.Reader) ([]pair, error) {
	var frames Frames
	frames.Reset(r)
	defer frames.Close()
	var all []pair
	for {
		ev, err := frames.Next()
		if err != nil {
			return all, err
		}
		all = append(all, pair{string(ev.Name), string(ev.Data)})
	}
}

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// publishedFrames are the examples that AWS publishes with its own reader (aws/protocol/eventstream/testdata in
// github.com/aws/aws-sdk-go-v2, Apache-2.0), in hex. "damaged" is the word that must be in the error of a damaged one.
var publishedFrames = []struct{ name, hex, payload, damaged string }{
	{"empty", "000000100000000005c248eb7d98c8ff", "", ""},
	{"no headers", "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936", "{'foo':'bar'}", ""},
	{"one string", "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
		"{'foo':'bar'}", ""},
	{"one integer", "0000002d0000001041c424b80a6576656e742d74797065040000a00c7b27666f6f273a27626172277d36f480a0", "{'foo':'bar'}", ""},
	{"every type of header", "000000cc000000af0fae64ca0a6576656e742d74797065040000a00c0c636f6e74656e742d74797065070010617070" +
		"6c69636174696f6e2f6a736f6e0a626f6f6c2066616c73650109626f6f6c207472756500046279746502cf08627974652062756606001449276d" +
		"2061206c6974746c6520746561706f74210974696d657374616d70080000000000845fed05696e74313603002a05696e74363405000000000287" +
		"57b20475756964090102030405060708090a0b0c0d0e0f107b27666f6f273a27626172277daba5f10c", "{'foo':'bar'}", ""},
	{"damaged length", "0000003e0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
		"", "beginning"},
	{"damaged length of the headers", "0000003d0000002107fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
		"", "beginning"},
	{"damaged headers", "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b61666f6f273a27626172277d8d9c08b1",
		"", "does not match"},
	{"damaged payload", "0000001d00000000fd528c5a5b27666f6f273a27626172277dc3653936", "", "does not match"},
}

func TestPublishedFrames(t *testing.T) {
	t.Parallel()
	for _, tt := range publishedFrames {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := bytesOf(t, tt.hex)
			for how, r := range map[string]io.Reader{"whole": bytes.NewReader(raw), "byte by byte": iotest.OneByteReader(bytes.NewReader(raw))} {
				got, err := readFrames(r)
				if tt.damaged == "" {
					if diff := cmp.Diff([]pair{{"", tt.payload}}, got); diff != "" || !errors.Is(err, io.EOF) {
						t.Errorf("%s: error %v (-want +got)\n%s", how, err, diff)
					}
					continue
				}
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Class != llm.ClassMalformed || !e.Retryable() || !strings.Contains(e.Message, tt.damaged) || len(got) != 0 {
					t.Errorf("%s: %d events, error %v; want a malformed stream that is said to be %q", how, len(got), err, tt.damaged)
				}
			}
		})
	}
}

func TestFramesAreReadWhereverTheyAreCut(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 3*eventBuffer)
	in := llmtest.Frame("messageStart", `{"role":"assistant"}`) + llmtest.Frame("contentBlockDelta", big) + llmtest.Frame("messageStop", "{}")
	want := []pair{{"messageStart", `{"role":"assistant"}`}, {"contentBlockDelta", big}, {"messageStop", "{}"}}
	for how, r := range map[string]io.Reader{"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in)),
		"with the error": iotest.DataErrReader(strings.NewReader(in))} {
		got, err := readFrames(r)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v (-want +got)\n%s", how, err, diff)
		}
	}
	got, err := readFrames(strings.NewReader(in[:len(in)-1]))
	if diff := cmp.Diff(want[:2], got); diff != "" || !errors.Is(err, io.EOF) {
		t.Errorf("cut within the last frame: error %v (-want +got)\n%s", err, diff)
	}
}

func TestAFrameIsReturnedBeforeMoreIsRead(t *testing.T) {
	t.Parallel()
	reads := 0
	var frames Frames
	frames.Reset(io.MultiReader(strings.NewReader(llmtest.Frame("e", "a")), readerFunc(func([]byte) (int, error) {
		reads++
		return 0, io.EOF
	})))
	defer frames.Close()
	ev, err := frames.Next()
	if err != nil || string(ev.Data) != "a" || reads != 0 {
		t.Errorf("data %q, error %v, %d reads beyond the frame", ev.Data, err, reads)
	}
}

// prelude returns the beginning of a frame that claims these lengths, with the right checksum.
func prelude(total, headers uint32) string {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// sealed returns a frame whose checksums are right, whatever its headers are.
func sealed(headers string) string {
	b := prelude(uint32(16+len(headers)), uint32(len(headers))) + headers
	return string(binary.BigEndian.AppendUint32([]byte(b), crc32.ChecksumIEEE([]byte(b))))
}

func TestHostileFramesAreRefused(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"text":                             "data: {\"id\":\"secret-text\"}\n\n",
		"a page":                           "<html><body>Please sign in</body></html>",
		"a length below the least":         prelude(15, 0) + "abcd",
		"no length at all":                 prelude(0, 0) + "abcd",
		"headers longer than the frame":    prelude(20, 100) + strings.Repeat("x", 100),
		"headers above the format's limit": prelude(1<<20, 1<<20-16) + strings.Repeat("x", 1<<20),
		"a name beyond the headers":        sealed("\xffab"),
		"a type that does not exist":       sealed("\x01a\x0a"),
		"no type":                          sealed("\x01a"),
		"a value beyond the headers":       sealed("\x01a\x07\xff\xffxy"),
		"half a length":                    sealed("\x01a\x07\x00"),
		"half a number":                    sealed("\x01a\x05\x00\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readFrames(io.MultiReader(strings.NewReader(in), endless{}))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Class != llm.ClassMalformed || len(got) != 0 || strings.Contains(e.Error(), "secret-text") {
				t.Errorf("%d events, error %v; want a malformed stream that is not quoted", len(got), err)
			}
		})
	}
}

func TestAFrameIsBoundedAndItsClaimTakesNoMemory(t *testing.T) {
	t.Parallel()
	_, err := readFrames(io.MultiReader(strings.NewReader(prelude(MaxEvent+1, 0)), endless{}))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v for a frame above the limit, want ErrTooLarge", err)
	}
	big := strings.Repeat("x", 10<<20)
	got, err := readFrames(strings.NewReader(llmtest.Frame("e", big) + llmtest.Frame("e", "next")))
	if !errors.Is(err, io.EOF) || len(got) != 2 || got[0].Data != big || got[1].Data != "next" {
		t.Errorf("%d events, error %v; want the large one and the next", len(got), err)
	}
	var frames Frames
	frames.Reset(strings.NewReader(prelude(MaxEvent, 0) + "abc"))
	if _, err := frames.Next(); !errors.Is(err, io.EOF) || len(frames.buf) > eventBuffer {
		t.Errorf("error %v, with %d bytes taken for a claim of %d", err, len(frames.buf), MaxEvent)
	}
	frames.Close()
}

func TestTheErrorOfTheSourceOfFramesIsReturnedAndStays(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := readFrames(io.MultiReader(strings.NewReader(llmtest.Frame("e", "a")+"\x00\x00"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%v, error %v", got, err)
	}
	if _, err := readFrames(readerFunc(func([]byte) (int, error) { return 0, nil })); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v from a source that gives nothing, want io.ErrNoProgress", err)
	}
	var frames Frames
	frames.Reset(strings.NewReader(sealed("\x01a") + llmtest.Frame("e", "a")))
	defer frames.Close()
	_, first := frames.Next()
	if _, again := frames.Next(); first == nil || again != first {
		t.Errorf("first %v, then %v; want one error that stays", first, again)
	}
}

func TestFaultsInsideFrames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, frame string
		class       llm.Class
		retryable   bool
		message     string
	}{
		{"throttling that names tokens", llmtest.ExceptionFrame("throttlingException", `{"message":"Too many tokens, please wait before trying again."}`),
			llm.ClassRateLimit, true, "Too many tokens, please wait before trying again."},
		{"a server that cannot serve", llmtest.ExceptionFrame("serviceUnavailableException", `{"message":"Bedrock is unable to process your request."}`),
			llm.ClassOverloaded, true, "Bedrock is unable to process your request."},
		{"a fault of the server", llmtest.ExceptionFrame("internalServerException", `{"message":"oops"}`), llm.ClassOverloaded, true, "oops"},
		{"a fault of the model", llmtest.ExceptionFrame("modelStreamErrorException",
			`{"message":"The model broke off.","originalStatusCode":500,"originalMessage":"upstream"}`), llm.ClassProvider, true, "The model broke off.: upstream"},
		{"a slow model", llmtest.ExceptionFrame("modelTimeoutException", `{}`), llm.ClassOverloaded, true, "modelTimeoutException"},
		{"a request that is refused", llmtest.ExceptionFrame("validationException", `{"message":"The toolConfig field must be defined."}`),
			llm.ClassInvalidRequest, false, "The toolConfig field must be defined."},
		{"a prompt that is too long", llmtest.ExceptionFrame("validationException", `{"message":"Input is too long for requested model."}`),
			llm.ClassContextOverflow, false, "Input is too long for requested model."},
		{"an exception without a text", llmtest.ExceptionFrame("somethingNewException", ``), llm.ClassProvider, true, "somethingNewException"},
		{"an error without a payload", llmtest.RawFrame(map[string]string{":message-type": "error", ":error-code": "InternalError",
			":error-message": "An internal server error occurred"}, ""), llm.ClassProvider, true, "An internal server error occurred"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readFrames(strings.NewReader(llmtest.Frame("messageStart", "{}") + tt.frame + llmtest.Frame("messageStop", "{}")))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Class != tt.class || e.Retryable() != tt.retryable || e.Message != tt.message || e.Status != 0 || e.Code == "" {
				t.Errorf("error %+v, want class %s, retryable %v, message %q", e, tt.class, tt.retryable, tt.message)
			}
			if len(got) != 1 {
				t.Errorf("%d events before the fault, want 1", len(got))
			}
		})
	}
}

func TestErrorsOfAWSByStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		kind, body string
		class      llm.Class
	}{
		{400, "ValidationException", `{"message":"Input is too long for requested model."}`, llm.ClassContextOverflow},
		{400, "ValidationException:http://internal.example/coral/", `{"message":"Malformed input request"}`, llm.ClassInvalidRequest},
		{400, "ThrottlingException", `{"message":"Rate exceeded"}`, llm.ClassRateLimit},
		{400, "ServiceQuotaExceededException", `{"message":"Your request exceeds the service quota for your account."}`, llm.ClassQuota},
		{403, "AccessDeniedException", `{"Message":"User is not authorized"}`, llm.ClassAuth},
		{403, "InvalidSignatureException", `{"message":"The request signature we calculated does not match"}`, llm.ClassAuth},
		{404, "ResourceNotFoundException", `{"message":"Could not resolve the foundation model"}`, llm.ClassInvalidRequest},
		{404, "", `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`, llm.ClassInvalidRequest},
		{408, "ModelTimeoutException", `{"message":"x"}`, llm.ClassOverloaded},
		{424, "ModelErrorException", `{"message":"The model failed","originalStatusCode":500}`, llm.ClassProvider},
		{429, "ModelNotReadyException", `{"message":"The model is not ready"}`, llm.ClassRateLimit},
		{429, "ThrottlingException", `{"message":"Too many tokens, please wait before trying again."}`, llm.ClassRateLimit},
		{500, "InternalServerException", `{"message":"x"}`, llm.ClassOverloaded},
		{503, "ServiceUnavailableException", `{"message":"too many connections"}`, llm.ClassOverloaded},
	} {
		header := map[string][]string{"X-Amzn-Requestid": {"aws-1"}}
		if tt.kind != "" {
			header["X-Amzn-Errortype"] = []string{tt.kind}
		}
		e := StatusError(tt.status, header, []byte(tt.body), time.Time{})
		name, _, _ := strings.Cut(tt.kind, ":")
		if e.Class != tt.class || e.RequestID != "aws-1" || (name != "" && e.Code != name) || e.Message == "" {
			t.Errorf("%d %s %s: %+v, want class %s", tt.status, tt.kind, tt.body, e, tt.class)
		}
	}
	through := StreamError([]byte(`{"error":{"message":"litellm: BedrockException ThrottlingException: Too many tokens, please wait before trying again."}}`))
	if through.Class != llm.ClassRateLimit {
		t.Errorf("throttling told by a gateway has class %s", through.Class)
	}
}

// TestFramesOfRecordings reads the frames of recorded traffic of Amazon Bedrock. The exchanges are of InvokeModel, whose
// events no adapter reads, but the frames are the same.
func TestFramesOfRecordings(t *testing.T) {
	exchanges := llmtest.Recordings(t, "/invoke-with-response-stream")
	frames, cuts := 0, 0
	for _, x := range exchanges {
		whole, err := readFrames(strings.NewReader(x.Body))
		if !errors.Is(err, io.EOF) || len(whole) < 3 {
			t.Errorf("%s: %d frames, error %v", x.Name, len(whole), err)
			continue
		}
		one, err := readFrames(iotest.OneByteReader(strings.NewReader(x.Body)))
		if diff := cmp.Diff(whole, one); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v (-whole +byte by byte)\n%s", x.Name, err, diff)
		}
		for _, ev := range whole {
			var chunk struct{ Bytes []byte }
			if err := json.Unmarshal([]byte(ev.Data), &chunk); err != nil || !json.Valid(chunk.Bytes) || ev.Name != "chunk" {
				t.Errorf("%s: event %q is no chunk: %v", x.Name, ev.Name, err)
			}
		}
		for cut := 1; cut < len(x.Body); cut += 97 {
			if got, err := readFrames(strings.NewReader(x.Body[:cut])); !errors.Is(err, io.EOF) || !cmp.Equal(got, whole[:len(got):len(got)]) && len(got) > 0 {
				t.Errorf("%s cut at byte %d: %d frames, error %v", x.Name, cut, len(got), err)
			}
			cuts++
		}
		frames += len(whole)
	}
	t.Logf("%d exchanges with %d frames, cut at %d places; their events are those of InvokeModel and are not decoded", len(exchanges), frames, cuts)
}

// FuzzFrames checks that frames do not depend on how the bytes are cut, and that nothing is taken for a frame whose
// checksum is wrong.
func FuzzFrames(f *testing.F) {
	for _, tt := range publishedFrames {
		raw, err := hex.DecodeString(tt.hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, 3)
	}
	f.Add([]byte(llmtest.Frame("contentBlockDelta", `{"p":"abc"}`)+llmtest.ExceptionFrame("throttlingException", `{"message":"x"}`)), 7)
	f.Add([]byte(prelude(MaxEvent, 0)), 1)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		whole, err := readFrames(bytes.NewReader(in))
		if err == nil {
			t.Fatal("the input has no end")
		}
		some, errSome := readFrames(&chunks{in, size&15 + 1})
		if !cmp.Equal(whole, some) || err.Error() != errSome.Error() {
			t.Errorf("whole %q and %v, in pieces %q and %v", whole, err, some, errSome)
		}
		total := 0
		for _, ev := range whole {
			total += len(ev.Data) + preludeSize + checksumSize
		}
		if total > len(in) {
			t.Errorf("%d bytes of frames from %d bytes", total, len(in))
		}
	})
}

func BenchmarkFrames(b *testing.B) {
	const frames = 5000
	in := strings.Repeat(llmtest.Frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":" lorem"},"p":"abcdefghijklmnopqrst"}`), frames)
	b.ReportAllocs()
	for b.Loop() {
		if got := countFrames(strings.NewReader(in)); got != frames {
			b.Fatalf("%d frames", got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/frames, "ns/frame")
}

func countFrames(r io.Reader) int {
	var frames Frames
	frames.Reset(r)
	defer frames.Close()
	for n := 0; ; n++ {
		if _, err := frames.Next(); err != nil {
			return n
		}
	}
}
