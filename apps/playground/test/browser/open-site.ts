import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  type BrowserLane,
  type OpenBrowser,
  type OpenBrowserOptions,
  type OpenedPage,
  openBrowser,
  openPage,
  servePages,
} from "@halfstep/browser";
import type { AxeResults } from "axe-core";
import { expect } from "vitest";
import { buildPages } from "../built-pages.js";

/** A page in Chromium. */
export type Page = OpenedPage["page"];

/** Windows in which pages are looked at. */
export const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: "light", viewport: { width: 360, height: 740 } },
  // A window of 1280 pixels at 200 %.
  zoomed: { colorScheme: "light", viewport: { width: 640, height: 400 } },
} as const;

/** The name of one. */
export type Look = keyof typeof looks;

/** The built pages below a path of their own, under a strict policy. */
export interface OpenSite extends Pick<OpenBrowser, "gpuProcess" | "close"> {
  /** Does something on a page, which must say nothing on its console and find all of its files. */
  onPage(address: string, look: Look, use: (page: Page) => Promise<void>): Promise<void>;
}

/** Builds the pages and opens a browser for them. */
export async function openSite({
  flags = [],
}: Pick<OpenBrowserOptions, "flags"> = {}): Promise<OpenSite> {
  const built = await buildPages();
  const served = await servePages({ folder: built.folder, base: "/some/path/" });
  const lane = process.env.HALFSTEP_BROWSER_LANE as BrowserLane;
  const opened = await openBrowser({ lane, flags });
  return {
    gpuProcess: opened.gpuProcess,
    async onPage(address, look, use) {
      const context = await opened.browser.newContext({ ...looks[look], reducedMotion: "reduce" });
      const { page, messages } = await openPage(context, served.url + address);
      try {
        page.setDefaultTimeout(120_000);
        await page.waitForSelector("h1");
        await use(page);
        expect(messages).toEqual([]);
        expect(served.missing).toEqual([]);
      } finally {
        await context.close();
      }
    },
    async close() {
      await opened.close();
      await served.close();
      built.remove();
    },
  };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What makes a page hard to use without a mouse, a large screen or good eyes. */
export async function obstaclesOf(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run()")) as AxeResults;
  const width = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  const cut = await page.$$eval("svg text", (texts) =>
    texts
      .filter((text) => {
        const own = text.getBoundingClientRect();
        const drawing = text.closest("svg")?.parentElement?.getBoundingClientRect() ?? own;
        return own.left < drawing.left - 1 || own.right > drawing.right + 1;
      })
      .map(({ textContent }) => `${textContent} is cut off`),
  );
  return [
    ...cut,
    ...violations.map(
      ({ id, nodes }) =>
        `${id}, ${nodes.length} times: ${nodes
          .slice(0, 3)
          .map(({ html }) => html)
          .join(" ")}`,
    ),
    ...(width > 0 ? [`${width} pixels beyond the right edge`] : []),
  ];
}

/** With HALFSTEP_SCREENSHOTS=1, writes a picture of the README anew. */
export async function photograph(page: Page, name: string): Promise<void> {
  if (process.env.HALFSTEP_SCREENSHOTS !== "1") return;
  await page.screenshot({ path: join(import.meta.dirname, `../../docs/${name}.png`) });
}

/** Presses the button of a name. */
export const pressed = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Waits until the page of training shows a step. */
export async function reached(page: Page, step: number): Promise<void> {
  await page.waitForFunction(
    (wanted) => Number(/step (\d+) of/.exec(document.body.innerText)?.[1]) >= wanted,
    step,
    // The test that trains has a limit.
    { timeout: 0 },
  );
}

/** Pauses training as soon as the page shows a step. The page does it, so that training cannot end before a slow test asks for it. */
export async function pausedAt(page: Page, step: number): Promise<void> {
  await page.waitForFunction(
    (wanted) => {
      const step = Number(/step (\d+) of/.exec(document.body.innerText)?.[1] ?? 0);
      if (step < wanted) return false;
      const buttons = [...document.querySelectorAll("button")];
      const pause = buttons.find(({ textContent }) => textContent === "Pause");
      pause?.click();
      return pause !== undefined;
    },
    step,
    { timeout: 0 },
  );
}

/** Trains until a step, and pauses. */
export async function trainTo(page: Page, step: number): Promise<void> {
  await pressed(page, "Play");
  await pausedAt(page, step);
}

/** The figures of the lanes' cards by their names, lane by lane. */
export const figuresOf = (page: Page): Promise<Record<string, string>[]> =>
  page.$$eval(".lane", (lanes) =>
    lanes.map((lane) =>
      Object.fromEntries(
        [...lane.querySelectorAll("dl div")].map((figure) => [
          figure.querySelector("dt")?.textContent ?? "",
          figure.querySelector("dd")?.textContent ?? "",
        ]),
      ),
    ),
  );

/** The hashes of the lanes' weights, which are shown while training rests. */
export async function hashesOf(page: Page, lanes: number): Promise<string[]> {
  await page.waitForFunction(
    (count) => document.querySelectorAll(".hash code").length === count,
    lanes,
  );
  return page.$$eval(".hash code", (hashes) => hashes.map(({ textContent }) => textContent));
}
