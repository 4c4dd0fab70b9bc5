package api

import (
	"net/http"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
)

func (s *surface) listEvents(w http.ResponseWriter, r *http.Request) error {
	limit, err := pageLimit(r, calendar.MaxLimit)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	page, err := s.Calendar.List(r.Context(), calendar.Filter{From: q.Get("from"), To: q.Get("to"), Status: calendar.Status(q.Get("status")),
		Text: q.Get("q"), Limit: limit, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

func (s *surface) showEvent(w http.ResponseWriter, r *http.Request) error {
	event, err := s.Calendar.Find(r.Context(), r.PathValue("id"))
	return writeEvent(w, event, err)
}

func writeEvent(w http.ResponseWriter, event calendar.Event, err error) error {
	if err != nil {
		return changed(err)
	}
	w.Header().Set("ETag", etag(event.Version))
	writeJSON(w, http.StatusOK, event)
	return nil
}

func (s *surface) changeEvent(w http.ResponseWriter, r *http.Request) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	var update calendar.Update
	if _, err := readJSON(w, r, &update); err != nil {
		return err
	}
	event, err := s.Calendar.Change(r.Context(), r.PathValue("id"), version, update)
	return writeEvent(w, event, err)
}

func (s *surface) decide(status calendar.Status) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		event, err := s.Calendar.Decide(r.Context(), r.PathValue("id"), status)
		return writeEvent(w, event, err)
	}
}

func (s *surface) listLessons(w http.ResponseWriter, r *http.Request) error {
	limit, err := pageLimit(r, 200)
	if err != nil {
		return err
	}
	page, err := s.Memory.List(r.Context(), limit, r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

func (s *surface) searchLessons(w http.ResponseWriter, r *http.Request) error {
	limit, err := pageLimit(r, 200)
	if err != nil {
		return err
	}
	lessons, err := s.Memory.Search(r.Context(), r.URL.Query().Get("q"), limit)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"items": lessons})
	return nil
}

func (s *surface) showLesson(w http.ResponseWriter, r *http.Request) error {
	lesson, err := s.Memory.Find(r.Context(), r.PathValue("id"))
	return writeLesson(w, http.StatusOK, lesson, err)
}

func writeLesson(w http.ResponseWriter, status int, lesson memory.Lesson, err error) error {
	if err != nil {
		return changed(err)
	}
	w.Header().Set("ETag", etag(lesson.Version))
	writeJSON(w, status, lesson)
	return nil
}

func (s *surface) addLesson(w http.ResponseWriter, r *http.Request) error {
	var draft memory.Draft
	if _, err := readJSON(w, r, &draft); err != nil {
		return err
	}
	lesson, err := s.Memory.Add(r.Context(), draft)
	if err == nil {
		w.Header().Set("Location", "/memory/"+lesson.ID)
	}
	return writeLesson(w, http.StatusCreated, lesson, err)
}

func (s *surface) changeLesson(w http.ResponseWriter, r *http.Request) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	var update memory.Update
	if _, err := readJSON(w, r, &update); err != nil {
		return err
	}
	lesson, err := s.Memory.Change(r.Context(), r.PathValue("id"), version, update)
	return writeLesson(w, http.StatusOK, lesson, err)
}

func (s *surface) deleteLesson(w http.ResponseWriter, r *http.Request) error {
	version, err := ifMatch(r)
	if err != nil {
		return err
	}
	if err := s.Memory.Delete(r.Context(), r.PathValue("id"), version); err != nil {
		return changed(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
