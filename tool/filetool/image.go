package filetool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// The largest image that model services take: 4.5 MiB in base64, and 8000 pixels a side.
const (
	maxImageBytes = 4718592 / 4 * 3
	maxImageSide  = 8000
)

// readImage sends an image to a model that takes them, and describes it otherwise. An image that a service would refuse
// is never sent, since it would make every later request of the job fail.
func readImage(env *tool.Env, f *workspace.File, head []byte, format string) tool.Result {
	name := workspace.Escape(f.Display)
	note := func(text string, args ...any) tool.Result {
		return tool.Result{
			Text:    fmt.Sprintf("[This is an image (%s, %s). %s]", format, formatSize(f.Size), fmt.Sprintf(text, args...)),
			Summary: name + ", " + format,
		}
	}
	switch {
	case !env.Images:
		return note("The model in use does not take images, so it is not shown.")
	case f.Size > maxImageBytes:
		return note("It is larger than %s and is not shown.", formatSize(maxImageBytes))
	}
	data, err := io.ReadAll(io.MultiReader(bytes.NewReader(head), io.LimitReader(f, maxImageBytes-int64(len(head))+1)))
	if err != nil {
		return tool.Errorf("%q could not be read to its end", name)
	}
	if len(data) > maxImageBytes {
		return note("It grew beyond %s while it was read and is not shown.", formatSize(maxImageBytes))
	}
	size, err := checkImage(data, format)
	if err != nil {
		return note("It is not shown: %v.", err)
	}
	if max(size.X, size.Y) > maxImageSide {
		return note("It has %dx%d pixels, more than %d a side, and is not shown.", size.X, size.Y, maxImageSide)
	}
	return tool.Result{
		Text:    fmt.Sprintf("[Image %s, %s, %dx%d pixels, %s.]", name, format, size.X, size.Y, formatSize(int64(len(data)))),
		Images:  []llm.Image{{MediaType: format, Data: data}},
		Reads:   []tool.SourceRead{{Path: name, From: 1}},
		Summary: fmt.Sprintf("%s, %s, %dx%d", name, format, size.X, size.Y),
	}
}

// checkImage returns the size in pixels, or why the image is not fit to be sent: damaged, cut off or animated where
// services refuse that.
func checkImage(data []byte, format string) (image.Point, error) {
	switch format {
	case "image/png":
		return checkPNG(data)
	case "image/jpeg":
		c, err := jpeg.DecodeConfig(bytes.NewReader(data))
		if err != nil || !bytes.Contains(data[max(0, len(data)-64<<10):], []byte{0xff, 0xd9}) {
			return image.Point{}, errDamaged
		}
		return image.Pt(c.Width, c.Height), nil
	case "image/gif":
		c, err := gif.DecodeConfig(bytes.NewReader(data))
		if err != nil || !bytes.HasSuffix(bytes.TrimRight(data, "\x00"), []byte{';'}) {
			return image.Point{}, errDamaged
		}
		return image.Pt(c.Width, c.Height), nil
	}
	return checkWebP(data)
}

var errDamaged = errors.New("it is damaged or cut off")

// checkPNG walks the chunks: the image must reach its end marker, and an animation control chunk makes it an APNG.
func checkPNG(data []byte) (image.Point, error) {
	for rest := data[8:]; ; {
		if len(rest) < 12 || int64(binary.BigEndian.Uint32(rest)) > int64(len(rest))-12 {
			return image.Point{}, errDamaged
		}
		kind := string(rest[4:8])
		if kind == "acTL" {
			return image.Point{}, errors.New("it is an animated PNG")
		}
		if kind == "IEND" {
			break
		}
		rest = rest[12+binary.BigEndian.Uint32(rest):]
	}
	c, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return image.Point{}, errDamaged
	}
	return image.Pt(c.Width, c.Height), nil
}

// checkWebP reads the sizes in the container and in its first chunk, in the three forms that
// https://developers.google.com/speed/webp/docs/riff_container describes.
func checkWebP(data []byte) (image.Point, error) {
	if len(data) < 30 || int64(binary.LittleEndian.Uint32(data[4:]))+8 > int64(len(data)) {
		return image.Point{}, errDamaged
	}
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8X":
		uint24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return image.Pt(uint24(body[4:])+1, uint24(body[7:])+1), nil
	case "VP8 ":
		if !bytes.Equal(body[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return image.Point{}, errDamaged
		}
		return image.Pt(int(binary.LittleEndian.Uint16(body[6:]))&0x3fff, int(binary.LittleEndian.Uint16(body[8:]))&0x3fff), nil
	case "VP8L":
		if body[0] != 0x2f {
			return image.Point{}, errDamaged
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		return image.Pt(int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1), nil
	}
	return image.Point{}, errDamaged
}
