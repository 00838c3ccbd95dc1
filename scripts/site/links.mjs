import { posix } from "node:path";

/**
 * One line for each link of a site whose file or anchor does not exist, and for each file that a page loads from another
 * site.
 * @param {ReadonlyMap<string, { links: readonly { url: string, isLoaded: boolean }[], anchors: ReadonlySet<string> }>} pages
 *   by their files in the site, as `readPage` reads them
 * @param {ReadonlySet<string>} files of the site
 * @param {string} base the path below which the site is served, with a slash at its end
 */
export const deadLinks = (pages, files, base) => {
  const dead = new Set();
  for (const [page, { links }] of pages)
    for (const { url, isLoaded } of links) {
      if (/^([a-z]+:|\/\/)/i.test(url)) {
        if (isLoaded && !url.startsWith("data:")) dead.add(`${page} loads ${url}`);
        continue;
      }
      const [path, anchor = ""] = decodeURI(url)
        .replace(/\?[^#]*/, "")
        .split("#");
      const file = fileOf(path, page, base);
      if (!files.has(file)) dead.add(`${page}: ${url} leads nowhere`);
      else if (anchor !== "" && pages.has(file) && !pages.get(file).anchors.has(anchor))
        dead.add(`${page}: ${file} has no place #${anchor}`);
    }
  return [...dead];
};

/** The file of the site at a path. */
function fileOf(path, page, base) {
  if (path === "") return page;
  const file = path.startsWith("/")
    ? path.startsWith(base)
      ? path.slice(base.length)
      : `outside of ${base}`
    : posix.join(posix.dirname(page), path);
  return file === "" || file === "." || file.endsWith("/") ? posix.join(file, "index.html") : file;
}
