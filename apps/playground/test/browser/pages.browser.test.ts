import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  type BrowserLane,
  type OpenedPage,
  openBrowser,
  openPage,
  servePages,
} from "@halfstep/browser";
import type { AxeResults } from "axe-core";
import { afterAll, describe, expect, test } from "vitest";
import { buildPages } from "../built-pages.js";

type Page = OpenedPage["page"];

// The built pages in Chromium, below a path of their own and under a strict policy. With HALFSTEP_SCREENSHOTS=1 the pictures of the
// README are written anew.

const built = await buildPages();
const served = await servePages({ folder: built.folder, base: "/some/path/" });
const opened = await openBrowser({ lane: process.env.HALFSTEP_BROWSER_LANE as BrowserLane });
afterAll(async () => {
  await opened.close();
  await served.close();
  built.remove();
});

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: "light", viewport: { width: 360, height: 740 } },
  // A window of 1280 pixels at 200 %.
  zoomed: { colorScheme: "light", viewport: { width: 640, height: 400 } },
} as const;

type Look = keyof typeof looks;

/** Does something on a page, which must say nothing on its console and find all of its files. */
async function onPage(address: string, look: Look, use: (page: Page) => Promise<void>) {
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
}

/** What makes a page hard to use without a mouse, a large screen or good eyes. */
async function obstaclesOf(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run()")) as AxeResults;
  const width = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  return [
    ...violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`),
    ...(width > 0 ? [`${width} pixels beyond the right edge`] : []),
  ];
}

async function photograph(page: Page, name: string): Promise<void> {
  if (process.env.HALFSTEP_SCREENSHOTS !== "1") return;
  await page.screenshot({ path: join(import.meta.dirname, `../../docs/${name}.png`) });
}

const pressed = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Trains until a step, and pauses. */
async function trainTo(page: Page, step: number): Promise<void> {
  await pressed(page, "Play");
  await page.waitForFunction(
    (wanted) => Number(/step (\d+)/.exec(document.body.innerText)?.[1]) >= wanted,
    step,
  );
  await pressed(page, "Pause");
}

describe.each(Object.keys(looks) as Look[])("%s", (look) => {
  test("formats", () =>
    onPage("?format=bfloat16&value=257&scale=8", look, async (page) => {
      expect(await obstaclesOf(page)).toEqual([]);
      if (look === "dark") await photograph(page, "formats-dark");
    }));

  test("training, on the CPU", () =>
    onPage(
      "train.html?compute=cpu&shrink=18&setups=float16.float16-unscaled",
      look,
      async (page) => {
        await trainTo(page, look === "light" ? 60 : 2);
        await page.evaluate(() => {
          for (const details of document.querySelectorAll("details")) details.open = true;
        });
        expect(await obstaclesOf(page)).toEqual([]);
      },
    ));

  test("a file", () =>
    onPage("file.html", look, async (page) => {
      await pressed(page, "Look at an example");
      await page.waitForSelector("text=5 tensors");
      expect(await obstaclesOf(page)).toEqual([]);
      if (look === "light") await photograph(page, "file-light");
    }));
});

test("a device is measured, and leaves the bits that are expected of it", () =>
  onPage("device.html", "light", async (page) => {
    await page.getByRole("button", { name: "Copy" }).waitFor();
    expect(await page.locator("text=as expected of this adapter").count()).toBe(3);
    expect(await obstaclesOf(page)).toEqual([]);
  }));

test("bits flip by keyboard, and the address holds them", () =>
  onPage("", "light", async (page) => {
    await page.focus(".bit");
    await page.keyboard.press("Space");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowUp");
    expect(await page.textContent("output.value")).toBe("−0.09991455078125");
    await page.waitForFunction(() => location.search.includes("value=-0.09991455078125"));
    await page.reload();
    expect(await page.textContent("output.value")).toBe("−0.09991455078125");
  }));

test("two moons are learned on the device in three precisions, and weights can be taken along", () =>
  onPage("train.html", "light", async (page) => {
    await trainTo(page, 100);
    const losses = await page.$$eval(".lane dl div:first-child dd", (figures) =>
      figures.map(({ textContent }) => Number(textContent)),
    );
    expect(losses).toHaveLength(3);
    for (const loss of losses) expect(loss).toBeLessThan(0.1);
    await photograph(page, "train-light");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      pressed(page, "Weights (safetensors)"),
    ]);
    expect(download.suggestedFilename()).toMatch(/^float32-step-\d+\.safetensors$/);
  }));
