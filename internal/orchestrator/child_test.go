package orchestrator_test

// childName is the name under which the test binary is started again as a process that executes runs.
const childName = "run-worker"

func childMain(string, string) int { return 0 }
