import { posix } from "node:path";

/**
 * The place of a Markdown file of the repository in the site: `docs` is its root, and a README is the index of its folder.
 * @param {string} file from the root of the repository
 */
export const addressOf = (file) =>
  file === "README.md"
    ? "about.md"
    : file.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");

/** READMEs on npm link to files of the repository by this address. */
const repository = "https://github.com/halfstep/halfstep/blob/main/";

/**
 * The target of a page's link within the site: another page, or none if the site does not contain the file.
 * @param {string} href The link as the page has it.
 * @param {string} page The file with the link, from the root of the repository.
 * @param {(file: string) => boolean} isPage
 * @returns {string | undefined} Undefined where the text should stand without a link.
 */
export const linkInSite = (href, page, isPage) => {
  const isAbsolute = href.startsWith(repository);
  if (!isAbsolute && /^([a-z]+:|#)/.test(href)) return href;
  const [path, heading] = href.replace(repository, "").split("#");
  const folder = isAbsolute ? "." : posix.dirname(page);
  const file = posix.normalize(posix.join(folder, path)).replace(/\/$/, "");
  const target = [file, posix.join(file, "README.md")].find(isPage);
  if (target === undefined) return undefined;
  return `/${addressOf(target)}${heading === undefined ? "" : `#${heading}`}`;
};
