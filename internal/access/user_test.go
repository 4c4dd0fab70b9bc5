package access_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/problem"
)

func everywhere(role access.Role) access.RoleGrant { return access.RoleGrant{Role: role} }

func TestRolesGrowFromTheWeakestToTheStrongest(t *testing.T) {
	t.Parallel()
	var before []access.Permission
	for _, role := range access.Roles() {
		now := role.Permissions()
		for _, p := range before {
			if !slices.Contains(now, p) {
				t.Errorf("%s lacks %s", role, p)
			}
		}
		if len(now) <= len(before) {
			t.Errorf("%s may do no more than the role before it", role)
		}
		before = now
	}
	if diff := cmp.Diff(access.Permissions(), before); diff != "" {
		t.Errorf("the strongest role may not do everything: %s", diff)
	}
	if got := access.Role("nobody").Permissions(); got != nil {
		t.Errorf("an unknown role permits %v", got)
	}
}

func TestPermissionsHoldInTheirProject(t *testing.T) {
	t.Parallel()
	p := &access.Principal{Grants: map[string][]access.Permission{"": {access.RunsRead}, "a": {access.RunsStart}, "b": {access.RunsStart, access.RunsManage}}}
	for _, tc := range []struct {
		permission access.Permission
		project    string
		want       bool
	}{
		{access.RunsRead, "", true}, {access.RunsRead, "a", true}, {access.RunsRead, "z", true},
		{access.RunsStart, "a", true}, {access.RunsStart, "b", true}, {access.RunsStart, "", false}, {access.RunsStart, "z", false},
		{access.RunsManage, "a", false}, {access.UsersManage, "", false},
	} {
		if got := access.Allowed(p, tc.permission, tc.project); got != tc.want {
			t.Errorf("%s in %q: %t", tc.permission, tc.project, got)
		}
	}
	if access.Allowed(nil, access.RunsRead, "") {
		t.Error("nobody may read runs")
	}
	if all, _ := access.AllowedProjects(p, access.RunsRead); !all {
		t.Error("what holds everywhere does not hold in all projects")
	}
	if all, some := access.AllowedProjects(p, access.RunsStart); all || !slices.Equal(some, []string{"a", "b"}) {
		t.Errorf("all %t, projects %v", all, some)
	}
	if all, some := access.AllowedProjects(nil, access.RunsStart); all || some != nil {
		t.Errorf("nobody: all %t, projects %v", all, some)
	}
	if got := access.PrincipalOf(access.WithPrincipal(t.Context(), p)); got != p {
		t.Error("the context lost the principal")
	}
	if access.PrincipalOf(t.Context()) != nil {
		t.Error("a principal out of nothing")
	}
}

func TestAUserIsReportedWithAllThatIsWrong(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		_, _, err := w.CreateUser(t.Context(), w.admin, access.UserDraft{Email: "a b@", Name: "\x00", Roles: []access.RoleGrant{everywhere("king")}}, from())
		found := problem.Of(err)
		for _, at := range []string{"/email", "/name", "/roles"} {
			if !slices.ContainsFunc(found, func(p problem.Problem) bool { return p.Pointer == at }) {
				t.Errorf("nothing is said of %s: %v", at, err)
			}
		}
		w.add("ada@example.com", everywhere(access.Viewer))
		_, _, err = w.CreateUser(t.Context(), w.admin, access.UserDraft{Email: "ADA@example.com", Name: "Ada"}, from())
		wants(t, "an address that is taken", err, store.ErrExists)
	})
}

func TestNobodyGivesWhatTheyHaveNot(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		builder := w.principal(w.add("b@example.com", everywhere(access.Builder), access.RoleGrant{Project: "p", Role: access.Admin}).Token)
		create := func(role access.RoleGrant, email string) error {
			_, _, err := w.CreateUser(t.Context(), builder, access.UserDraft{Email: email, Name: "X", Roles: []access.RoleGrant{role}}, from())
			return err
		}
		wants(t, "a stronger role", create(everywhere(access.Admin), "1@example.com"), access.ErrForbidden)
		wants(t, "another project", create(access.RoleGrant{Project: "q", Role: access.Admin}, "2@example.com"), access.ErrForbidden)
		if err := create(access.RoleGrant{Project: "p", Role: access.Admin}, "3@example.com"); err != nil {
			t.Errorf("the own role in the own project: %v", err)
		}
		admin, err := w.User(t.Context(), tenant, w.admin.UserID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.PasswordLink(t.Context(), builder, admin.ID, from())
		wants(t, "a link to become an administrator", err, access.ErrForbidden)
		weaker := []access.RoleGrant{everywhere(access.Viewer)}
		_, err = w.UpdateUser(t.Context(), builder, admin.ID, admin.Version, access.UserChange{Roles: &weaker}, from())
		wants(t, "taking a stronger role away", err, access.ErrForbidden)
	})
}

func TestTheLastAdministratorStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		w.add("in-project@example.com", access.RoleGrant{Project: "p", Role: access.Admin})
		me, err := w.User(t.Context(), tenant, w.admin.UserID)
		if err != nil {
			t.Fatal(err)
		}
		yes, none := true, []access.RoleGrant{}
		for name, change := range map[string]access.UserChange{"disable": {Disabled: &yes}, "demote": {Roles: &none}} {
			_, err := w.UpdateUser(t.Context(), w.admin, me.ID, me.Version, change, from())
			wants(t, name, err, access.ErrLastAdmin)
		}
		wants(t, "delete", w.DeleteUser(t.Context(), w.admin, me.ID, me.Version, from()), access.ErrLastAdmin)
		// Two who disable each other at the same time: one of them stays.
		second := w.add("second@example.com", everywhere(access.Admin))
		other := w.principal(second.Token)
		results := make([]error, 2)
		var both sync.WaitGroup
		both.Go(func() {
			_, results[0] = w.UpdateUser(t.Context(), w.admin, other.UserID, 2, access.UserChange{Disabled: &yes}, from())
		})
		both.Go(func() {
			_, results[1] = w.UpdateUser(t.Context(), other, me.ID, me.Version, access.UserChange{Disabled: &yes}, from())
		})
		both.Wait()
		if (results[0] == nil) == (results[1] == nil) {
			t.Errorf("results %v", results)
		}
	})
}

func TestAChangeNamesTheVersionItWasMadeFrom(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		id := w.add("ada@example.com", everywhere(access.Viewer)).User.ID
		user, err := w.User(t.Context(), tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		name := "Ada Lovelace"
		changed, err := w.UpdateUser(t.Context(), w.admin, id, user.Version, access.UserChange{Name: &name}, from())
		if err != nil || changed.Name != name || changed.Version != user.Version+1 || len(changed.Roles) != 1 {
			t.Errorf("changed = %+v, %v", changed, err)
		}
		_, err = w.UpdateUser(t.Context(), w.admin, id, user.Version, access.UserChange{Name: &name}, from())
		wants(t, "an old version", err, store.ErrStale)
		wants(t, "deleting an old version", w.DeleteUser(t.Context(), w.admin, id, user.Version, from()), store.ErrStale)
		if err := w.DeleteUser(t.Context(), w.admin, id, changed.Version, from()); err != nil {
			t.Error(err)
		}
		_, err = w.User(t.Context(), tenant, id)
		wants(t, "a deleted user", err, store.ErrNotFound)
	})
}

func TestWhoIsDisabledOrDeletedIsOutAtOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world, access.User) error{
		"disabled": func(w *world, u access.User) error {
			yes := true
			_, err := w.UpdateUser(w.t.Context(), w.admin, u.ID, u.Version, access.UserChange{Disabled: &yes}, from())
			return err
		},
		"deleted": func(w *world, u access.User) error {
			return w.DeleteUser(w.t.Context(), w.admin, u.ID, u.Version, from())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				w := newWorld(t, db)
				session := w.add("ada@example.com", everywhere(access.Operator))
				p := w.principal(session.Token)
				_, key, err := w.CreateKey(t.Context(), p, access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsStart}}, from())
				if err != nil {
					t.Fatal(err)
				}
				link, err := w.PasswordLink(t.Context(), w.admin, p.UserID, from())
				if err != nil {
					t.Fatal(err)
				}
				user, err := w.User(t.Context(), tenant, p.UserID)
				if err != nil {
					t.Fatal(err)
				}
				if err := end(w, user); err != nil {
					t.Fatal(err)
				}
				_, err = w.Authenticate(t.Context(), session.Token)
				wants(t, "session", err, access.ErrUnauthenticated)
				_, err = w.AuthenticateKey(t.Context(), key)
				wants(t, "key", err, access.ErrUnauthenticated)
				_, err = w.Redeem(t.Context(), access.Redemption{Token: link, Password: secret.New(password), From: from()})
				wants(t, "link", err, access.ErrLink)
				_, err = w.signIn("ada@example.com", password)
				wants(t, "password", err, access.ErrCredentials)
			})
		})
	}
}

func TestAKeyMayDoItsPartOfWhatItsOwnerMay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		p := w.principal(w.add("ada@example.com", everywhere(access.Viewer), access.RoleGrant{Project: "a", Role: access.Operator}, access.RoleGrant{Project: "b", Role: access.Builder}).Token)
		create := func(d access.KeyDraft) (*access.Principal, error) {
			if d.Name == "" {
				d.Name = "k"
			}
			_, text, err := w.CreateKey(t.Context(), p, d, from())
			if err != nil {
				return nil, err
			}
			return w.AuthenticateKey(t.Context(), text)
		}
		wide, err := create(access.KeyDraft{Permissions: []access.Permission{access.RunsStart, access.RunsRead}})
		if err != nil {
			t.Fatal(err)
		}
		for project, want := range map[string]bool{"a": true, "b": true, "c": false, "": false} {
			if access.Allowed(wide, access.RunsStart, project) != want || !access.Allowed(wide, access.RunsRead, project) || access.Allowed(wide, access.AgentsManage, project) {
				t.Errorf("the key in %q: %v", project, wide.Grants)
			}
		}
		narrow, err := create(access.KeyDraft{Permissions: []access.Permission{access.RunsRead}, Projects: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		if !access.Allowed(narrow, access.RunsRead, "a") || access.Allowed(narrow, access.RunsRead, "b") || access.Allowed(narrow, access.RunsRead, "") {
			t.Errorf("a key for one project: %v", narrow.Grants)
		}
		_, err = create(access.KeyDraft{Permissions: []access.Permission{access.UsersManage}})
		wants(t, "more than the owner may", err, access.ErrForbidden)
		_, err = create(access.KeyDraft{Permissions: []access.Permission{access.AgentsManage}, Projects: []string{"a", "b"}})
		wants(t, "more than the owner may in one of the projects", err, access.ErrForbidden)
		_, err = create(access.KeyDraft{Permissions: []access.Permission{"x.y"}, Projects: []string{""}, ExpiresAt: w.clock.Now()})
		if got := problem.Of(err); len(got) != 3 {
			t.Errorf("problems = %v", err)
		}
		_, _, err = w.CreateKey(t.Context(), wide, access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsRead}}, from())
		wants(t, "a key that makes a key", err, access.ErrForbidden)

		// What its owner loses, the key loses.
		user, err := w.User(t.Context(), tenant, p.UserID)
		if err != nil {
			t.Fatal(err)
		}
		less := []access.RoleGrant{everywhere(access.Viewer)}
		if _, err := w.UpdateUser(t.Context(), w.admin, user.ID, user.Version, access.UserChange{Roles: &less}, from()); err != nil {
			t.Fatal(err)
		}
		_, text, err := w.CreateKey(t.Context(), p, access.KeyDraft{Name: "late", Permissions: []access.Permission{access.RunsStart}}, from())
		if err != nil {
			t.Fatal(err)
		}
		if late, err := w.AuthenticateKey(t.Context(), text); err != nil || access.Allowed(late, access.RunsStart, "a") {
			t.Errorf("the key kept what its owner lost: %v, %v", late, err)
		}
	})
}

func TestAKeyIsKnownByItsFormExpiresAndIsDeleted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		key, text, err := w.CreateKey(t.Context(), w.admin, access.KeyDraft{Name: "ci", Permissions: []access.Permission{access.RunsRead}, ExpiresAt: w.clock.Now().Add(time.Hour)}, from())
		if err != nil {
			t.Fatal(err)
		}
		plain := text.Reveal()
		if !access.IsKey(plain) || plain[:len(key.Hint)] != key.Hint || len(key.Hint) > 12 {
			t.Errorf("hint %q", key.Hint)
		}
		for i := range plain {
			changed := []byte(plain)
			if changed[i] = 'a'; plain[i] == 'a' {
				changed[i] = 'b'
			}
			if access.IsKey(string(changed)) {
				t.Errorf("a mistake at %d is not seen", i)
			}
		}
		for _, no := range []string{"", "hozo_", plain + "a", plain[1:], "sk-" + plain} {
			_, err := w.AuthenticateKey(t.Context(), secret.New(no))
			wants(t, "no key", err, access.ErrUnauthenticated)
		}
		used := func() time.Time {
			keys, err := w.Keys(t.Context(), tenant, w.admin.UserID)
			if err != nil || len(keys) != 1 {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			return keys[0].LastUsedAt
		}
		if !used().IsZero() {
			t.Error("a key that nobody used was used")
		}
		first := w.clock.Now()
		for range 3 {
			if _, err := w.AuthenticateKey(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			w.clock.add(20 * time.Second)
		}
		if !used().Equal(first) {
			t.Errorf("last used %v, want %v: it is exact to a minute", used(), first)
		}
		w.clock.add(time.Hour)
		_, err = w.AuthenticateKey(t.Context(), text)
		wants(t, "an expired key", err, access.ErrUnauthenticated)

		another := w.principal(w.add("ada@example.com", everywhere(access.Viewer)).Token)
		wants(t, "another's key", w.DeleteKey(t.Context(), another, key.ID, from()), store.ErrNotFound)
		if err := w.DeleteKey(t.Context(), w.admin, key.ID, from()); err != nil {
			t.Error(err)
		}
		wants(t, "a deleted key", w.DeleteKey(t.Context(), w.admin, key.ID, from()), store.ErrNotFound)
	})
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		target := w.add("ada@example.com", everywhere(access.Viewer))
		key, _, err := w.CreateKey(t.Context(), w.admin, access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsRead}}, from())
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := w.FirstAdminLink(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		session, err := w.Redeem(t.Context(), access.Redemption{Token: token, Password: secret.New(password), Email: "root@example.com", Name: "Other root", From: from()})
		if err != nil {
			t.Fatal(err)
		}
		stranger := w.principal(session.Token)
		if stranger.Tenant != "other" {
			t.Fatalf("tenant %q", stranger.Tenant)
		}
		id, yes := target.User.ID, true
		for name, f := range map[string]func() error{
			"user": func() error { _, err := w.User(t.Context(), "other", id); return err },
			"update": func() error {
				_, err := w.UpdateUser(t.Context(), stranger, id, 2, access.UserChange{Disabled: &yes}, from())
				return err
			},
			"delete":  func() error { return w.DeleteUser(t.Context(), stranger, id, 2, from()) },
			"link":    func() error { _, err := w.PasswordLink(t.Context(), stranger, id, from()); return err },
			"session": func() error { return w.EndSession(t.Context(), stranger, id, target.Session.ID, from()) },
			"key":     func() error { return w.DeleteKey(t.Context(), stranger, key.ID, from()) },
		} {
			foreign := f()
			if !errors.Is(foreign, store.ErrNotFound) {
				t.Errorf("%s: error = %v", name, foreign)
			}
		}
		if err := w.SignOutEverywhere(t.Context(), stranger, id, from()); err != nil {
			t.Error(err)
		}
		if _, err := w.Authenticate(t.Context(), target.Token); err != nil {
			t.Errorf("a stranger ended the session: %v", err)
		}
		users, err := w.Users(t.Context(), "other", "", 10)
		if err != nil || len(users) != 1 {
			t.Errorf("%d users, %v", len(users), err)
		}
		for _, of := range []string{id, w.admin.UserID, ""} {
			if keys, err := w.Keys(t.Context(), "other", of); err != nil || len(keys) != 0 {
				t.Errorf("%d keys, %v", len(keys), err)
			}
		}
		if sessions, err := w.Sessions(t.Context(), "other", id); err != nil || len(sessions) != 0 {
			t.Errorf("%d sessions, %v", len(sessions), err)
		}
	})
}

func TestUsersAreListedInPages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		for _, email := range []string{"c@example.com", "a@example.com", "b@example.com"} {
			w.add(email, everywhere(access.Viewer), access.RoleGrant{Project: "p", Role: access.Operator})
		}
		var got []string
		for after := ""; ; {
			page, err := w.Users(t.Context(), tenant, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range page {
				got = append(got, u.Email)
				if u.Email != "root@example.com" && len(u.Roles) != 2 {
					t.Errorf("%s has %v", u.Email, u.Roles)
				}
			}
			if len(page) < 2 {
				break
			}
			after = page[1].Email
		}
		if diff := cmp.Diff([]string{"a@example.com", "b@example.com", "c@example.com", "root@example.com"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheOperatorsKeyWorksBeforeThereIsAUser(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		local := access.NewKey()
		s, _ := service(t, db, func(c *access.Config) { c.Local = local })
		p, err := s.AuthenticateKey(t.Context(), local)
		if err != nil || p.KeyID != access.LocalKeyID || p.Tenant != access.DefaultTenant || !access.Allowed(p, access.UsersManage, "") {
			t.Fatalf("%+v, %v", p, err)
		}
		if _, _, err := s.CreateUser(t.Context(), p, access.UserDraft{Email: "ada@example.com", Name: "Ada", Roles: []access.RoleGrant{everywhere(access.Admin)}}, from()); err != nil {
			t.Error(err)
		}
		_, _, err = s.CreateKey(t.Context(), p, access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsRead}}, from())
		wants(t, "a key that makes a key", err, access.ErrForbidden)
		_, err = s.AuthenticateKey(t.Context(), access.NewKey())
		wants(t, "another key", err, access.ErrUnauthenticated)
		without, _ := service(t, db)
		_, err = without.AuthenticateKey(t.Context(), local)
		wants(t, "a server without such a key", err, access.ErrUnauthenticated)
		hunt(t, "what is printed", fmt.Sprintf("%v %+v %#v", s, s, p), local.Reveal())
	})
}
