package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

const (
	// maxImageBytes and maxImageSide are the largest image that model services take.
	maxImageBytes = 4718592 / 4 * 3
	maxImageSide  = 8000
	// maxImages bounds the images of one result.
	maxImages = 8
)

// convert turns what a server answered into a result for the model.
func (srv *server) convert(answer *mcp.CallToolResult, env *tool.Env) tool.Result {
	if problem := incomplete(answer); problem != "" {
		return tool.Errorf("%s", srv.secrets.remove(problem))
	}
	r := &rendering{images: env != nil && env.Images}
	for _, content := range answer.Content {
		r.add(content)
	}
	structured := srv.structured(answer.StructuredContent)
	if !r.words && structured != nil {
		r.texts = append(r.texts, string(structured))
	}
	text := strings.Join(r.texts, "\n")
	if answer.IsError {
		if strings.TrimSpace(text) == "" {
			text = "the tool failed without saying why"
		}
		text = "The tool reports an error:\n" + text
	}
	text = srv.secrets.remove(visible(text))
	return tool.Result{Text: cutMiddle(text), Images: r.pictures, IsError: answer.IsError, Structured: structured}
}

// structured returns the structured part of a result, nil if there is none.
func (srv *server) structured(value any) json.RawMessage {
	if value == nil {
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil // it was decoded from JSON and so always has a form
	}
	return json.RawMessage(srv.secrets.remove(string(data)))
}

// incomplete returns what to tell the model about an answer that is not the end of the call, "" if it is.
func incomplete(answer *mcp.CallToolResult) string {
	if answer.NeedsInput() || len(answer.InputRequests) > 0 {
		return "the tool wants to ask a person or a model in the middle of the call, which this job does not offer; the call was not completed"
	}
	// The SDK keeps the kind of a result to itself; it is read from a copy without the content.
	probe := *answer
	probe.Content, probe.StructuredContent, probe.Meta = nil, nil, nil
	var shown struct {
		ResultType string `json:"resultType"`
	}
	if data, err := json.Marshal(&probe); err != nil || json.Unmarshal(data, &shown) != nil {
		return "the server's answer could not be read"
	}
	if shown.ResultType != "" && shown.ResultType != "complete" {
		return fmt.Sprintf("the server answered with a result of the unknown kind %q, so it cannot be told whether the call was completed", line(shown.ResultType))
	}
	return ""
}

// rendering collects the parts of a result.
type rendering struct {
	images   bool
	words    bool // a text of the server is among texts
	texts    []string
	pictures []llm.Image
}

func (r *rendering) add(content mcp.Content) {
	switch c := content.(type) {
	case *mcp.TextContent:
		r.words = true
		r.texts = append(r.texts, c.Text)
	case *mcp.ImageContent:
		r.image(c.MIMEType, c.Data)
	case *mcp.AudioContent:
		r.note("audio, %s, %d bytes; audio is not passed on", line(c.MIMEType), len(c.Data))
	case *mcp.ResourceLink:
		r.note("link to a resource: %s", describeLink(c))
	case *mcp.EmbeddedResource:
		r.resource(c.Resource)
	default:
		r.note("content of a kind that is not passed on")
	}
}

// note adds a line in brackets, which is how everything that we say in the place of content is marked.
func (r *rendering) note(format string, args ...any) {
	r.texts = append(r.texts, "["+fmt.Sprintf(format, args...)+"]")
}

func describeLink(c *mcp.ResourceLink) string {
	parts := []string{line(c.URI)}
	for _, text := range []string{c.Name, c.Title, c.Description, c.MIMEType} {
		if text = line(text); text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if c.Size != nil {
		parts = append(parts, fmt.Sprintf("%d bytes", *c.Size))
	}
	return strings.Join(parts, ", ")
}

func (r *rendering) resource(c *mcp.ResourceContents) {
	switch {
	case c == nil:
		r.note("an empty resource")
	case len(c.Blob) > 0 && strings.HasPrefix(c.MIMEType, "image/"):
		r.note("resource %s", line(c.URI))
		r.image(c.MIMEType, c.Blob)
	case c.Blob != nil:
		r.note("resource %s, %s, %d bytes; its content is not text and is not passed on", line(c.URI), line(c.MIMEType), len(c.Blob))
	default:
		r.words = true
		r.note("resource %s, %s", line(c.URI), line(c.MIMEType))
		r.texts = append(r.texts, c.Text)
	}
}

// image passes an image on if the model takes it and services will; otherwise a note stands in its place, so that one bad
// image does not break every later request of the job.
func (r *rendering) image(mediaType string, data []byte) {
	about := fmt.Sprintf("image, %s, %d bytes", line(mediaType), len(data))
	size, err := imageSize(mediaType, data)
	switch {
	case !r.images:
		r.note("%s; not shown, since the model in use does not take images", about)
	case len(data) > maxImageBytes:
		r.note("%s; not shown, since it is larger than %d bytes", about, maxImageBytes)
	case err != nil:
		r.note("%s; not shown: %v", about, err)
	case max(size.X, size.Y) > maxImageSide:
		r.note("%s; not shown, since its %dx%d pixels are more than %d a side", about, size.X, size.Y, maxImageSide)
	case len(r.pictures) >= maxImages:
		r.note("%s; not shown, since it is not among the first %d", about, maxImages)
	default:
		r.pictures = append(r.pictures, llm.Image{MediaType: mediaType, Data: data})
		r.note("%s, %dx%d pixels; shown as image %d of this result", about, size.X, size.Y, len(r.pictures))
	}
}

var (
	errDamaged   = errors.New("it is damaged or not of the type that it claims")
	errMediaType = errors.New("only PNG, JPEG, GIF and WebP are passed on")
)

// imageSize reads the size of an image and whether it is whole.
func imageSize(mediaType string, data []byte) (image.Point, error) {
	var config image.Config
	var err error
	whole := false
	switch mediaType {
	case "image/png":
		config, err = png.DecodeConfig(bytes.NewReader(data))
		whole = bytes.HasSuffix(data, []byte("\x00\x00\x00\x00IEND\xaeB`\x82"))
	case "image/jpeg":
		config, err = jpeg.DecodeConfig(bytes.NewReader(data))
		whole = bytes.Contains(data[max(0, len(data)-1024):], []byte{0xff, 0xd9})
	case "image/gif":
		config, err = gif.DecodeConfig(bytes.NewReader(data))
		whole = bytes.HasSuffix(data, []byte{0x3b})
	case "image/webp":
		return webpSize(data)
	default:
		return image.Point{}, errMediaType
	}
	if err != nil || !whole || config.Width <= 0 || config.Height <= 0 {
		return image.Point{}, errDamaged
	}
	return image.Pt(config.Width, config.Height), nil
}

// webpSize reads the three kinds of header that a WebP file can have (RFC 9649).
func webpSize(data []byte) (image.Point, error) {
	le := func(at, n int) int {
		v := 0
		for i := range n {
			v |= int(data[at+i]) << (8 * i)
		}
		return v
	}
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" || le(4, 4)+8 > len(data) {
		return image.Point{}, errDamaged
	}
	switch string(data[12:16]) {
	case "VP8X":
		return image.Pt(le(24, 3)+1, le(27, 3)+1), nil
	case "VP8L":
		if data[20] == 0x2f {
			bits := le(21, 4)
			return image.Pt(bits&0x3fff+1, bits>>14&0x3fff+1), nil
		}
	case "VP8 ":
		if string(data[23:26]) == "\x9d\x01\x2a" {
			return image.Pt(le(26, 2)&0x3fff, le(28, 2)&0x3fff), nil
		}
	}
	return image.Point{}, errDamaged
}
