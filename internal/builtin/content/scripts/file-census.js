// Counts files, lines and bytes for each ending below the sources, and the same for each folder at the top.
const listing = await tools.find({ pattern: "**/*", details: true, limit: 20000 });
const endings = new Map();
const folders = new Map();
let cut = "";

function add(table, key, bytes, lines) {
  const row = table.get(key) ?? { files: 0, lines: 0, bytes: 0 };
  row.files += 1;
  row.lines += lines;
  row.bytes += bytes;
  table.set(key, row);
}

const paths = [];
for (const line of listing.split("\n")) {
  const file = line.match(/^(.*) \((\d+) bytes?(?:, (\d+) lines?)?\)$/);
  if (file) {
    paths.push([file[1], Number(file[2]), Number(file[3] ?? 0)]);
  } else if (line.startsWith("[")) {
    cut = line;
  }
}

// The folder in which everything stands is not a part of its own.
const first = paths.length > 0 ? paths[0][0].split("/")[0] + "/" : "";
const root = paths.every(([path]) => path.startsWith(first)) ? first : "";
for (const [path, bytes, lines] of paths) {
  const inside = path.slice(root.length);
  const name = inside.split("/").pop();
  const dot = name.lastIndexOf(".");
  add(endings, dot > 0 ? name.slice(dot).toLowerCase() : name, bytes, lines);
  add(folders, inside.includes("/") ? inside.split("/")[0] + "/" : "(top)", bytes, lines);
}

const rows = (table) =>
  [...table].sort((a, b) => b[1].lines - a[1].lines || b[1].bytes - a[1].bytes).slice(0, 40)
    .map(([name, row]) => `${name}: ${row.files} files, ${row.lines} lines, ${row.bytes} bytes`);

return [`${paths.length} files`, "", "By ending:", ...rows(endings), "", "By folder:", ...rows(folders), ...(cut ? ["", cut] : [])].join("\n");
