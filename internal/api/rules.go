package api

import (
	"net/http"

	"github.com/hozo-run/hozo/internal/access"
)

// rule says who may use a route.
type rule struct {
	// open routes ask for nobody.
	open bool
	// needs is the permission that the route asks for, "" for anybody who is known. It is enough to have it in one project;
	// what belongs to another is not found then.
	needs access.Permission
	// whole asks for the permission in the whole installation: what the route is about belongs to no project.
	whole bool
	// session lets every person through; programs need the permission.
	session bool
	// action is what the audit log calls it; "" records nothing, for routes that change nothing and for those whose service
	// records by itself.
	action string
}

// permits reports whether a principal may use the route.
func (r rule) permits(p *access.Principal) bool {
	if r.needs == "" || r.session && p.SessionID != "" {
		return true
	}
	if r.whole {
		return access.Allowed(p, r.needs, "")
	}
	all, projects := access.AllowedProjects(p, r.needs)
	return all || len(projects) > 0
}

// rules is the one table of who may do what: a row for each route, and a route without one is closed.
func rules() map[string]rule {
	const (
		get, post  = http.MethodGet + " ", http.MethodPost + " "
		put, patch = http.MethodPut + " ", http.MethodPatch + " "
		remove     = http.MethodDelete + " "
		v1         = "/api/v1"
		aUser      = v1 + "/users/{id}"
		aProvider  = v1 + "/providers/{id}"
		aBinding   = v1 + "/bindings/{agent}"
		aServer    = v1 + "/mcp-servers/{name}"
		aRun       = v1 + "/runs/{id}"
		agents     = "/api/admin/agents"
		anAgent    = agents + "/{name}"
		skills     = "/api/admin/agent-skills"
		aSkill     = skills + "/{name}"
		aProject   = v1 + "/projects/{id}"
		aSource    = aProject + "/sources/{name}"
	)
	open, known := rule{open: true}, rule{}
	users := rule{needs: access.UsersManage, whole: true}
	accounts := rule{needs: access.ProvidersManage, whole: true}
	accountsDo := func(action string) rule { return rule{needs: access.ProvidersManage, whole: true, action: action} }
	readRuns := rule{needs: access.RunsRead}
	readAgents := rule{needs: access.AgentsRead, session: true}
	agentsDo := func(action string) rule { return rule{needs: access.AgentsManage, whole: true, action: action} }
	projectsDo := func(action string) rule { return rule{needs: access.ProjectsManage, action: action} }
	return map[string]rule{
		get + "/livez": open, get + "/readyz": open, get + "/openapi.json": open,

		get + v1 + "/sign-in": open, post + v1 + "/sign-in": open, post + v1 + "/sign-out": known,
		get + v1 + "/session": known, post + v1 + "/password": known,
		post + v1 + "/links/look": open, post + v1 + "/links/redeem": open,
		get + v1 + "/oidc/sign-in": open, get + v1 + "/oidc/callback": open,
		get + v1 + "/sessions": known, remove + v1 + "/sessions": known, remove + v1 + "/sessions/{session}": known,

		get + v1 + "/users": users, post + v1 + "/users": users,
		get + aUser: users, patch + aUser: users, remove + aUser: users, post + aUser + "/password-link": users,
		get + aUser + "/sessions": users, remove + aUser + "/sessions": users, remove + aUser + "/sessions/{session}": users,
		get + v1 + "/roles": known,
		get + v1 + "/keys":  known, post + v1 + "/keys": known, remove + v1 + "/keys/{id}": known,
		get + aUser + "/keys": users,
		get + v1 + "/audit":   {needs: access.AuditRead, whole: true}, post + v1 + "/audit/verify": {needs: access.AuditRead, whole: true},

		get + v1 + "/providers": accounts, post + v1 + "/providers": accountsDo("provider.create"),
		get + aProvider: accounts, put + aProvider: accountsDo("provider.update"), remove + aProvider: accountsDo("provider.delete"),
		get + aProvider + "/model": accounts, post + aProvider + "/test": accountsDo("provider.test"),
		get + v1 + "/bindings": readAgents, get + aBinding: readAgents,
		put + aBinding: {needs: access.ProvidersManage, action: "binding.save"}, remove + aBinding: {needs: access.ProvidersManage, action: "binding.delete"},
		get + v1 + "/mcp-servers": accounts, post + v1 + "/mcp-servers": accountsDo("mcp-server.create"),
		get + aServer: accounts, put + aServer: accountsDo("mcp-server.update"), remove + aServer: accountsDo("mcp-server.delete"),
		post + aServer + "/refresh": accountsDo("mcp-server.refresh"), post + aServer + "/accept": accountsDo("mcp-server.accept"),

		get + agents: readAgents, get + agents + "/context": readAgents, post + agents + "/preview": readAgents,
		post + agents: agentsDo("agent.create"), post + agents + "/import": agentsDo("agent.import"),
		get + anAgent: readAgents, put + anAgent: agentsDo("agent.update"), patch + anAgent: agentsDo("agent.switch"), remove + anAgent: agentsDo("agent.delete"),
		post + anAgent + "/copy": agentsDo("agent.copy"), get + anAgent + "/definition": readAgents, get + anAgent + "/export": readAgents,
		get + anAgent + "/versions": readAgents, get + anAgent + "/versions/{version}": readAgents,
		post + anAgent + "/versions/{version}/restore": agentsDo("agent.restore"),
		get + skills: readAgents, post + skills: agentsDo("skill.create"), get + aSkill: readAgents, get + aSkill + "/export": readAgents,
		put + aSkill: agentsDo("skill.update"), remove + aSkill: agentsDo("skill.delete"),

		get + v1 + "/projects": readRuns, post + v1 + "/projects": {needs: access.ProjectsManage, whole: true, action: "project.create"},
		get + aProject: readRuns, put + aProject: projectsDo("project.update"), remove + aProject: projectsDo("project.delete"),
		get + aProject + "/sources": readRuns, get + aSource: readRuns, put + aSource: projectsDo("source.save"), remove + aSource: projectsDo("source.delete"),
		get + aProject + "/artifacts": readRuns, get + aRun + "/artifacts": readRuns,
		get + v1 + "/artifacts/{id}": readRuns, get + v1 + "/artifacts/{id}/content": readRuns,

		post + v1 + "/runs": {needs: access.RunsStart}, get + v1 + "/runs": readRuns, get + aRun: readRuns,
		post + aRun + "/cancel":    {needs: access.RunsManage, action: "run.cancel"},
		post + aRun + "/decisions": {needs: access.ApprovalsDecide, action: "run.decide"},
		get + aRun + "/attempts":   readRuns, get + aRun + "/steps": readRuns, get + aRun + "/steps/{n}/output": readRuns,
		get + aRun + "/journal": readRuns, get + aRun + "/events": readRuns, get + v1 + "/events": readRuns,
	}
}
