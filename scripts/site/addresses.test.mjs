import { describe, expect, it } from "vitest";
import { addressOf, linkInSite } from "./addresses.mjs";

describe("addressOf", () => {
  it("has docs at the root of the site, and READMEs as indexes", () => {
    expect(
      ["docs/README.md", "docs/guide/tutorial.md", "packages/nn/README.md", "README.md"].map(
        addressOf,
      ),
    ).toEqual(["index.md", "guide/tutorial.md", "packages/nn/index.md", "about.md"]);
  });
});

describe("linkInSite", () => {
  const pages = ["docs/guide/a.md", "docs/decisions/README.md", "packages/nn/README.md"];
  const link = (href) => linkInSite(href, "docs/guide/a.md", (file) => pages.includes(file));

  it("leads to pages, folders with a README included", () => {
    expect(link("../../packages/nn/README.md#api")).toBe("/packages/nn/index.md#api");
    expect(link("../decisions/")).toBe("/decisions/index.md");
    expect(link("https://github.com/halfstep/halfstep/blob/main/packages/nn/README.md")).toBe(
      "/packages/nn/index.md",
    );
  });

  it("leads nowhere where the site has no such file", () => {
    expect(link("../../packages/nn/src")).toBeUndefined();
    expect(link("https://github.com/halfstep/halfstep/blob/main/gone.md")).toBeUndefined();
  });

  it("leaves places in the page and other sites as they are", () => {
    expect(["#b", "https://x.y/z.md", "mailto:a@b.c"].map(link)).toEqual([
      "#b",
      "https://x.y/z.md",
      "mailto:a@b.c",
    ]);
  });
});
