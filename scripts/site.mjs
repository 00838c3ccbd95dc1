// `npm run docs`: builds the documentation site into dist/docs, the pages by VitePress and the API reference by TypeDoc. The build fails
// on a warning of either, a dead link, or a page that loads a file from another site. DOCS_BASE=/path/ is the path at which the site
// will be served.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { readInstallState, staleInstall } from "./bootstrap/install.mjs";
import { lastLines, run } from "./bootstrap/run.mjs";
import { deadLinks } from "./site/links.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = join(root, "scripts", "site");
const vitepress = join(folder, "vitepress");
const site = join(root, "dist", "docs");
const base = process.env.DOCS_BASE ?? "/";
if (!/^\/(.*\/)?$/.test(base)) {
  console.error(`DOCS_BASE is ${base}: it must begin and end with a slash, such as /halfstep/.`);
  process.exit(2);
}

/** Runs a part of the build, whose output is warnings and errors. */
async function part(label, args) {
  const { code, output, seconds } = await run(process.execPath, args, { cwd: root, label });
  const isClean = code === 0 && !/warn/i.test(output);
  if (!isClean) console.error(lastLines(output, 60).join("\n"));
  console.log(`${isClean ? "ok     " : "FAILED "} ${label} (${seconds.toFixed(1)} s)`);
  return isClean;
}

const { lock, installed } = readInstallState(vitepress);
if (staleInstall(lock, installed) !== undefined) {
  const { code, output } = await run("npm", ["ci"], { cwd: vitepress, label: "VitePress" });
  if (code !== 0) {
    console.error(lastLines(output, 20).join("\n"));
    process.exit(1);
  }
}

rmSync(site, { recursive: true, force: true });
const isBuilt =
  (await part("pages", [
    join(vitepress, "node_modules", "vitepress", "bin", "vitepress.js"),
    "build",
    vitepress,
  ])) && (await part("API reference", [join(folder, "api.mjs"), join(site, "api")]));
if (isBuilt) {
  // The parser of read-page.mjs may have been installed above.
  const { readPage } = await import("./site/vitepress/read-page.mjs");
  const files = readdirSync(site, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(site, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const pages = new Map(
    files
      .filter((file) => file.endsWith(".html"))
      .map((file) => [file, readPage(readFileSync(join(site, file), "utf8"))]),
  );
  const dead = deadLinks(pages, new Set(files), base);
  for (const line of dead) console.error(line);
  console.log(`${pages.size} pages, ${dead.length} dead links: ${relative(root, site)}`);
  process.exitCode = dead.length > 0 ? 1 : 0;
} else process.exitCode = 1;
