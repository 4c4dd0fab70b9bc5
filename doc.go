// Package hozo is the root of a runtime for AI agents. It holds no code: the contract is package job, the runtime that
// fulfils it is package kernel, and the program is cmd/hozo. The tests here are the house rules of the project, which
// read the source and fail on whatever breaks them. ARCHITECTURE.md says in which order to read the rest.
package hozo
