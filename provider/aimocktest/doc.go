// Package aimocktest runs whole jobs against aimock, a server written by others that speaks the APIs of many providers and
// breaks its answers on request. It is a second opinion on the adapters: our own tests play what we believe that providers
// send, this server what its authors believe. The package holds tests only. They are skipped where fetch.sh has not put the
// server into the cache; "make aimock" fetches it and runs them.
package aimocktest
