import { afterAll, describe, expect, test } from "vitest";
import {
  figuresOf,
  type Look,
  looks,
  obstaclesOf,
  openSite,
  photograph,
  pressed,
  trainTo,
} from "./open-site.js";

// The pages in Chromium. With HALFSTEP_SCREENSHOTS=1 the pictures of the README are written anew.

const { onPage, close } = await openSite();
afterAll(close);

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

  test("inside a step", () =>
    onPage("inside.html?at=12", look, async (page) => {
      await page.waitForSelector(".panel pre");
      await page.evaluate(() => {
        for (const details of document.querySelectorAll("details")) details.open = true;
      });
      expect(await obstaclesOf(page)).toEqual([]);
    }));

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
    const losses = (await figuresOf(page)).map(({ loss }) => Number(loss));
    expect(losses).toHaveLength(3);
    for (const loss of losses) expect(loss).toBeLessThan(0.1);
    await photograph(page, "train-light");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      pressed(page, "Weights (safetensors)"),
    ]);
    expect(download.suggestedFilename()).toMatch(/^float32-step-\d+\.safetensors$/);
  }));
