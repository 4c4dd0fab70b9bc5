// Finds marks of unfinished work and counts them for each file, with the first ones as examples.
const found = await tools.grep({ pattern: "\\b(TODO|FIXME|HACK|XXX|BUG)\\b", limit: 2000 });
const files = new Map();
let cut = "";
for (const line of found.split("\n")) {
  const hit = line.match(/^(.+?):(\d+):\s?(.*)$/);
  if (!hit) {
    if (line.startsWith("[")) cut = line;
    continue;
  }
  const [, path, at, text] = hit;
  const row = files.get(path) ?? { count: 0, examples: [] };
  row.count += 1;
  if (row.examples.length < 3) row.examples.push(`${path}:${at} ${text.trim().slice(0, 120)}`);
  files.set(path, row);
}
const rows = [...files].sort((a, b) => b[1].count - a[1].count);
const total = rows.reduce((sum, [, row]) => sum + row.count, 0);
return [`${total} marks in ${rows.length} files`, ...rows.slice(0, 30).flatMap(([path, row]) => [`${path}: ${row.count}`, ...row.examples.map((e) => "  " + e)]),
  ...(cut ? [cut] : [])].join("\n");
