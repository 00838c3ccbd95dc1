import { execFileSync } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { headingsOf } from "../../../gates/documents.mjs";
import { addressOf, linkInSite } from "../../addresses.mjs";
import { chinese, chineseSearch, english } from "../navigation.mjs";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const files = new Set(
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
    cwd: root,
    encoding: "utf8",
  }).split("\n"),
);

/** Links between files of the repository become links between pages; those to other files become text. */
const siteLinks = (md) => {
  md.core.ruler.push("site-links", ({ tokens, env }) => {
    const page = relative(root, env.realPath ?? env.path);
    for (const { children } of tokens.filter(({ type }) => type === "inline")) {
      const open = [];
      for (const token of children) {
        if (token.type === "link_open") {
          const link = linkInSite(token.attrGet("href"), page, (file) => files.has(file));
          if (link === undefined)
            Object.assign(token, { type: "span_open", tag: "span", attrs: null });
          else token.attrSet("href", link);
          open.push(token);
        } else if (token.type === "link_close") {
          const { type, tag } = open.pop();
          if (type === "span_open") Object.assign(token, { type: "span_close", tag });
        }
      }
    }
  });
};

/** The words of a text. Chinese has no spaces between them. VitePress sends this function to the browser as it is written here. */
const tokenize = (text) =>
  text
    .split(/[\n\r\p{Z}\p{P}]+/u)
    .flatMap((part) => [...new Intl.Segmenter("zh", { granularity: "word" }).segment(part)])
    .map(({ segment }) => segment);

export default defineConfig({
  title: "Halfstep",
  description: "Mixed precision training on WebGPU, in TypeScript",
  srcDir: root,
  // Markdown of tools and tests, and change logs.
  srcExclude: ["**/test/**", "scripts/**", "**/dist/**", "**/CHANGELOG.md"],
  rewrites: addressOf,
  outDir: fileURLToPath(new URL("../../../../dist/docs", import.meta.url)),
  cacheDir: fileURLToPath(new URL("../node_modules/.cache/vitepress", import.meta.url)),
  // The site opens below any path: DOCS_BASE=/halfstep/ npm run docs
  base: process.env.DOCS_BASE ?? "/",
  locales: {
    root: { label: "English", lang: "en", themeConfig: english },
    zh: { label: "简体中文", lang: "zh-Hans", link: "/zh/", themeConfig: chinese },
  },
  markdown: {
    config: siteLinks,
    linkify: false,
    anchor: { slugify: (title) => headingsOf(`# ${title}`)[0] },
  },
  themeConfig: {
    // Few pages are translated: the menu of languages leads to the first page of each.
    i18nRouting: false,
    search: {
      provider: "local",
      options: {
        miniSearch: { options: { tokenize } },
        locales: { zh: { translations: chineseSearch } },
      },
    },
  },
  vite: { build: { chunkSizeWarningLimit: 4096 } },
});
