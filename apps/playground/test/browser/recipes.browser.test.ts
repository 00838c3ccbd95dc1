import { afterAll, describe, expect, test } from "vitest";
import { readState, writeState } from "../../src/site/url-state.js";
import { configFields, presets, type TrainConfig } from "../../src/train/config.js";
import { setups } from "../../src/train/setups.js";
import { figuresOf, openSite, type Page, pressed, reached, trainTo } from "./open-site.js";

// What takes long: every preset on the device, and every precision of digits and of the GPT.

const site = await openSite();
afterAll(site.close);

const initial = readState(configFields, "");
const addressOf = (config: Partial<TrainConfig>): string =>
  `train.html${writeState(configFields, { ...initial, ...config })}`;

type Figures = Record<string, string>;

/** Trains a preset, and returns the figures of its lanes by their setups. */
async function trained(page: Page, preset: string, steps: number): Promise<Map<string, Figures>> {
  const { config } = presets.find(({ id }) => id === preset) as (typeof presets)[number];
  await trainTo(page, steps);
  await page.waitForSelector(".hash");
  const figures = await figuresOf(page);
  return new Map(config.setups.map((id, i) => [id, figures[i] as Figures]));
}

const onPreset = (id: string, use: (page: Page) => Promise<void>): Promise<void> => {
  const { config } = presets.find((each) => each.id === id) as (typeof presets)[number];
  return site.onPage(addressOf(config), "light", use);
};

const lossOf = (lane: Figures | undefined): number => Number(lane?.loss);
const shareOf = (text: string | undefined): number => Number.parseFloat(text ?? "") / 100;
const accuracies = (page: Page): Promise<number[]> =>
  page.$$eval(".lane .big", (figures) =>
    figures.map(({ textContent }) => Number.parseFloat(textContent) / 100),
  );

describe("presets fail without their cure and pass with it", () => {
  test("underflow", () =>
    onPreset("underflow", async (page) => {
      const lanes = await trained(page, "underflow", 100);
      expect(lossOf(lanes.get("float16-unscaled"))).toBeGreaterThan(0.5);
      for (const id of ["float32", "float16"]) expect(lossOf(lanes.get(id))).toBeLessThan(0.1);
    }));

  test("overflow", () =>
    onPreset("overflow", async (page) => {
      const lanes = await trained(page, "overflow", 150);
      const skipped = lanes.get("float16-fixed")?.["steps skipped"];
      expect(Number(skipped)).toBeGreaterThanOrEqual(150);
      expect(Number(lanes.get("float16")?.["steps skipped"])).toBeLessThan(25);
      expect(lossOf(lanes.get("float16"))).toBeLessThan(0.1);
    }));

  test("origin", () =>
    onPreset("origin", async (page) => {
      const lanes = await trained(page, "origin", 40);
      expect(await page.innerText(".origin")).toMatch(
        /^infinity in the forward pass, first in cast of layers\.0/,
      );
      // Each step is skipped, until the scale cannot be halved any more.
      expect(Number(lanes.get("float16")?.["steps skipped"])).toBeGreaterThanOrEqual(30);
      await page.waitForSelector("text=The loss scale cannot get any smaller");
      expect(Number.isFinite(lossOf(lanes.get("bfloat16")))).toBe(true);
    }));

  test("masters", () =>
    onPreset("masters", async (page) => {
      const lanes = await trained(page, "masters", 60);
      const [, masters = 0, plain = 1] = await accuracies(page);
      console.log(
        `note: by small steps ${plain} of digits are read without masters, ${masters} with`,
      );
      expect(plain).toBeLessThanOrEqual(0.2);
      expect(masters).toBeGreaterThan(2 * plain);
      expect(shareOf(lanes.get("bfloat16-plain")?.["updates lost"])).toBeGreaterThan(0.8);
      expect(lossOf(lanes.get("bfloat16"))).toBeLessThan(lossOf(lanes.get("bfloat16-plain")));
    }));
});

const halves = [setups.slice(0, 3), setups.slice(3)].map((some) => some.map(({ id }) => id));

describe.each(halves)("%s, %s and %s", (...ids) => {
  test("read digits", () =>
    site.onPage(addressOf({ task: "digits", setups: ids, lr: 0.002 }), "light", async (page) => {
      await trainTo(page, 120);
      await page.waitForSelector(".hash");
      const read = await accuracies(page);
      console.log(
        `note: after 120 steps ${ids.join(", ")} read ${read.join(", ")} of unseen digits`,
      );
      for (const share of read) expect(share).toBeGreaterThan(0.85);
    }));

  test("write what they learn", () =>
    site.onPage(addressOf({ task: "text", setups: ids }), "light", async (page) => {
      await trainTo(page, 120);
      await page.waitForSelector(".hash");
      const losses = (await figuresOf(page)).map(lossOf);
      console.log(`note: after 120 steps the GPT's losses are ${losses.join(", ")}`);
      for (const loss of losses) expect(loss).toBeLessThan(1.5);
      const written = await page.$$eval(".written", (all) =>
        all.map(({ textContent }) => textContent),
      );
      for (const text of written) expect(text).toMatch(/\w{3}/);
    }));
});

test("the CNN reads 96 % of unseen digits, and one that is drawn", () =>
  site.onPage(
    addressOf({ task: "digits", setups: ["float16"], lr: 0.002 }),
    "light",
    async (page) => {
      await pressed(page, "Play");
      await reached(page, 500);
      await page.waitForSelector(".hash");
      const [share = 0] = await accuracies(page);
      console.log(`note: after 500 steps in float16 ${share} of unseen digits are read`);
      expect(share).toBeGreaterThanOrEqual(0.96);
      await drawOne(page);
      await pressed(page, "Read it");
      await page.waitForSelector("text=reads 1,");
    },
  ));

/** A vertical line in the middle, by mouse. */
async function drawOne(page: Page): Promise<void> {
  const canvas = page.locator(".drawing canvas");
  await canvas.scrollIntoViewIfNeeded();
  const { x = 0, y = 0, width = 0, height = 0 } = (await canvas.boundingBox()) ?? {};
  await page.mouse.move(x + 0.52 * width, y + 0.2 * height);
  await page.mouse.down();
  await page.mouse.move(x + 0.5 * width, y + 0.8 * height, { steps: 20 });
  await page.mouse.up();
}
