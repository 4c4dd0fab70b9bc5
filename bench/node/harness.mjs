// Drives one Node runtime through the same work as the Go runners and prints one record, with the fields of the Go package
// harness. Start node with --expose-gc.
import fs from 'node:fs';

export const SYSTEM = 'You are a careful assistant. Use the add tool whenever a sum is needed. Answer briefly.';
export const TOOL_DESCRIPTION = 'Add two integers and return the sum.';
const PROMPT = 'What is 1+2?';

const counts = { toolCalls: 0, deltas: 0 };
export function add(a, b) { counts.toolCalls++; return String(a + b); }
export function countDelta() { counts.deltas++; }

function flag(name, fallback) {
  const at = process.argv.indexOf('-' + name);
  return at < 0 ? fallback : process.argv[at + 1];
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function settle() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await pause(30);
  }
}

function statusKB(key) {
  if (!fs.existsSync('/proc/self/status')) return 0;
  const found = fs.readFileSync('/proc/self/status', 'utf8').match(new RegExp('^' + key + ':\\s+(\\d+)', 'm'));
  return found ? Number(found[1]) : 0;
}

// each calls f for 0 to n-1, conc at a time.
async function each(n, conc, f) {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(conc, n) }, async () => {
    for (let i = next++; i < n; i = next++) await f(i);
  }));
}

// main measures in the mode of the command line. make(base, model) returns a session with run(prompt).
export async function main(make) {
  const base = flag('base', 'http://127.0.0.1:9001');
  const mode = flag('mode', 'runs');
  const work = {};
  for (const [key, fallback] of Object.entries({ runs: 200, conc: 1, turns: 10, pieces: 20, burst: 1 })) work[key] = Number(flag(key, fallback));

  const stats = async () => (await fetch(base + '/stats')).json();
  const tell = async (what) => { await (await fetch(base + what, { method: 'POST' })).text(); };
  const one = async (model) => {
    const session = await make(base, model);
    if (!await session.run(PROMPT)) throw new Error('the answer is empty');
  };

  const record = { mode, work };
  const modes = {
    async runs() {
      await each(50, Math.min(work.conc, 50), () => one('fake-t2-c5')); // compiles what is hot
      await tell('/reset');
      await settle();
      counts.toolCalls = counts.deltas = 0;
      const model = `fake-t${work.turns}-c${work.pieces}-b${work.burst}`;
      const cpu = process.cpuUsage();
      const began = performance.now();
      await each(work.runs, work.conc, () => one(model));
      const seconds = (performance.now() - began) / 1000;
      const used = process.cpuUsage(cpu);
      const { requests, requestBytes } = await stats();
      Object.assign(record, counts, { requests, requestKB: requestBytes / requests / 1024, cpuMicros: (used.user + used.system) / requests,
        callsPerSec: requests / seconds, peakRSSMB: statusKB('VmHWM') / 1024 });
    },
    async agents() {
      const model = `fake-t${work.turns}-c${work.pieces}`;
      const first = await make(base, model);
      await settle();
      const heap = process.memoryUsage().heapUsed;
      const keep = [first];
      const cpu = process.cpuUsage();
      for (let i = 0; i < work.runs; i++) keep.push(await make(base, model));
      const used = process.cpuUsage(cpu);
      await settle();
      Object.assign(record, { agentMicros: (used.user + used.system) / work.runs, agentKB: (process.memoryUsage().heapUsed - heap) / 1024 / work.runs });
      if (keep.length !== work.runs + 1) throw new Error('agents were lost');
    },
    async active() {
      await one('fake-t2-c5');
      await settle();
      await tell('/reset');
      const rss = statusKB('VmRSS');
      const heap = process.memoryUsage().heapUsed;
      const runs = each(work.runs, work.runs, () => one(`fake-t0-c${work.pieces}-h1`));
      let held = 0;
      for (const end = Date.now() + 60_000; Date.now() < end && held < work.runs; await pause(20)) ({ held } = await stats());
      await pause(200);
      await settle();
      Object.assign(record, { held, baseRSSMB: rss / 1024, runRSSKB: (statusKB('VmRSS') - rss) / work.runs,
        runHeapKB: (process.memoryUsage().heapUsed - heap) / 1024 / work.runs });
      await tell('/release');
      await runs;
    },
    async start() { await one(`fake-t1-c${work.pieces}`); },
  };
  if (!modes[mode]) throw new Error(`unknown mode ${mode}`);
  await modes[mode]();
  console.log(JSON.stringify(record));
  process.exit(0);
}
