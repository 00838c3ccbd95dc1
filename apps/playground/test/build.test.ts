import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { contentSecurityPolicy } from "../src/site/content-security-policy.js";
import { buildPages } from "./built-pages.js";

const { folder, remove } = await buildPages();
afterAll(remove);

const pages = (): string[] => readdirSync(folder).filter((file) => file.endsWith(".html"));
const textOf = (file: string): string => readFileSync(join(folder, file), "utf8");

/** The files that a page loads before it does anything: what it names, and what its scripts import. */
function filesOf(page: string): Set<string> {
  const files = new Set([page]);
  for (const file of files) {
    const named = file.endsWith(".html")
      ? /(?:src|href)="(\.\/[^"]+)"/g
      : /(?:from|import)\s*"(\.[^"]+\.js)"/g;
    if (!/\.(html|js)$/.test(file)) continue;
    for (const [, name = ""] of textOf(file).matchAll(named)) {
      const path = join(dirname(file), name);
      if (!path.endsWith(".html")) files.add(path);
    }
  }
  return files;
}

test("the formats page takes at most 40 kB, gzipped", () => {
  const files = [...filesOf("index.html")];
  expect(files.length).toBeGreaterThanOrEqual(3);
  const bytes = files.reduce((sum, file) => sum + gzipSync(textOf(file), { level: 9 }).length, 0);
  expect(bytes).toBeLessThan(40_000);
});

test("every page has the policy, and nothing that it would forbid", () => {
  for (const page of pages()) {
    const html = textOf(page).replaceAll("&#39;", "'");
    expect(html, page).toContain(`content="${contentSecurityPolicy}"`);
    expect(html, page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
    expect(html, page).not.toMatch(/(?:src|href)="(?:https?:|\/)/);
  }
});

test("scripts and styles load nothing from elsewhere and evaluate nothing", () => {
  for (const file of readdirSync(join(folder, "assets"))) {
    const text = textOf(join("assets", file));
    // A module of ours has a method eval().
    expect(/(?<![.\w$])eval\((?!\))|new Function\(/.test(text), file).toBe(false);
    const loads = /(?:from|import\(?)\s*["']https?:|url\(["']?(?:https?:)?\/\//;
    expect(loads.test(text), file).toBe(false);
  }
});

test("a page whose scripts do not run says why", () => {
  expect(pages()).toHaveLength(5);
  for (const page of pages()) expect(textOf(page), page).toContain("This page has not started.");
});
