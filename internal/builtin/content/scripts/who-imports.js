// Shows which folders import which, from the import lines of common languages. It reads lines and resolves nothing: use it
// to choose where to look.
const patterns = [
  "^\\s*import\\s+(?:[\\w*{}\\s,$]+\\s+from\\s+)?[\"']([^\"']+)[\"']",
  "^\\s*(?:from\\s+([\\w.]+)\\s+import|import\\s+([\\w.]+))",
  "^\\s*(?:[\\w.]+\\s+)?\"([\\w./-]+/[\\w./-]+)\"$",
  "^\\s*(?:#include\\s+[<\"]([^>\"]+)[>\"]|use\\s+([\\w:]+)|require\\(?[\"']([^\"']+)[\"'])",
];
const edges = new Map();
for (const pattern of patterns) {
  const found = await tools.grep({ pattern, limit: 4000 });
  for (const line of found.split("\n")) {
    const hit = line.match(/^(.+?):(\d+):\s?(.*)$/);
    if (!hit) continue;
    const target = hit[3].match(/["'<]([^"'>]+)["'>]/)?.[1] ?? hit[3].trim().split(/\s+/)[1];
    if (!target) continue;
    const from = hit[1].split("/").slice(0, -1).join("/") || ".";
    const key = `${from} -> ${target.split("/").slice(0, 6).join("/")}`;
    edges.set(key, (edges.get(key) ?? 0) + 1);
  }
}
const rows = [...edges].sort((a, b) => b[1] - a[1]);
return [`${rows.length} pairs of folder and import`, ...rows.slice(0, 150).map(([edge, n]) => `${edge} (${n})`)].join("\n");
