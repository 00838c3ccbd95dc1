import { expect, it } from "vitest";
import { deadLinks } from "./links.mjs";

const page = (urls, anchors = []) => ({
  links: urls.map((url) => ({ url, isLoaded: false })),
  anchors: new Set(anchors),
});
const dead = (pages, base = "/") =>
  deadLinks(new Map(Object.entries(pages)), new Set([...Object.keys(pages), "a.png"]), base);

it("follows relative links, links from the root, folders and places in pages", () => {
  const pages = {
    "index.html": page(["b/c.html#d", "/b/", "/a.png?v=1", "#top"], ["top"]),
    "b/c.html": page(["../"], ["d"]),
    "b/index.html": page(["c.html"]),
  };
  expect(dead(pages)).toEqual([]);
});

it("finds missing files and places", () => {
  expect(dead({ "index.html": page(["gone.html", "#gone", "/gone.png"]) })).toEqual([
    "index.html: gone.html leads nowhere",
    "index.html: index.html has no place #gone",
    "index.html: /gone.png leads nowhere",
  ]);
});

it("knows the path below which a site is served", () => {
  expect(dead({ "index.html": page(["/docs/", "/"]) }, "/docs/")).toEqual([
    "index.html: / leads nowhere",
  ]);
});

it("refuses what a page loads from elsewhere, but not links to it", () => {
  const links = [
    { url: "https://x.y", isLoaded: false },
    { url: "https://x.y/a.js", isLoaded: true },
    { url: "//fonts.x/y.css", isLoaded: true },
    { url: "data:,", isLoaded: true },
  ];
  expect(dead({ "index.html": { links, anchors: new Set() } })).toEqual([
    "index.html loads https://x.y/a.js",
    "index.html loads //fonts.x/y.css",
  ]);
});
