import { writeSafetensors } from "@halfstep/safetensors";
import { afterAll, describe, expect, test } from "vitest";
import {
  type Look,
  looks,
  obstaclesOf,
  openSite,
  type Page,
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
      // The line for pages that cannot start has made room.
      expect(await page.locator("#page > .unstarted").count()).toBe(0);
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
      await page.waitForSelector("text=an example: 5 tensors.");
      expect(await obstaclesOf(page)).toEqual([]);
      const name = await page.locator(".exams tbody th").first().boundingBox();
      // Names are broken where they have to be, not after each syllable.
      expect(name?.width).toBeGreaterThan(120);
      if (look === "light") await photograph(page, "file-light");
    }));
});

test("arrow keys open launches, and a slider plans the step; the address holds both", () =>
  onPage("inside.html", "light", async (page) => {
    await page.focus(".launch[tabindex='0']");
    await page.keyboard.press("ArrowDown");
    await page.waitForSelector("text=linear of layers.0 in float16");
    await page.waitForSelector(".wgsl");
    await page.getByRole("slider").focus();
    await page.keyboard.press("End");
    await page.waitForSelector("text=15 launches");
    await page.evaluate(() => document.querySelector("#launches")?.scrollIntoView());
    await photograph(page, "inside-light");
    const open = await page.innerText(".panel h2");
    await page.waitForFunction(() => location.search.includes("stage=reuseMemory"));
    await page.reload();
    await page.waitForSelector(".wgsl");
    expect(await page.innerText(".panel h2")).toBe(open);
    expect(await page.innerText(".wgsl")).toContain("enable f16;");
    await pressed(page, "without");
    await page.waitForFunction(
      () => !document.querySelector(".wgsl")?.textContent?.includes("enable f16;"),
    );
  }));

test("a file of 20,000 tensors is shown in parts", () =>
  onPage("file.html", "light", async (page) => {
    const tensors = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => {
        const data = Float32Array.of(i === 19_999 ? 1e6 : 1);
        return [`layers.${i}.scale`, { dtype: "F32", shape: [1], data } as const];
      }),
    );
    const buffer = Buffer.from(writeSafetensors(tensors));
    const mimeType = "application/octet-stream";
    await page.setInputFiles("input[type=file]", { name: "many.safetensors", mimeType, buffer });
    await page.waitForSelector("text=many.safetensors: 20,000 tensors.");
    const rows = (): Promise<number> => page.locator(".exams tbody tr").count();
    expect(await rows()).toBe(200);
    await pressed(page, "Show 200 more of 19800");
    expect(await rows()).toBe(400);
    await page.getByLabel("only tensors that overflow or become 0").check();
    expect(await page.locator(".exams tbody tr").allInnerTexts()).toEqual([
      expect.stringMatching(/^layers\.19999\.scale 1\t.*100 % overflow/),
    ]);
    expect(await obstaclesOf(page)).toEqual([]);
  }));

test("files beside the field are taken, a folder is named, and the address holds the example", () =>
  onPage("file.html", "light", async (page) => {
    await dropped(page, ["first.safetensors", "second.safetensors"]);
    await page.waitForSelector("text=first.safetensors: no tensors. One file is shown at a time");
    await dropped(page, ["some folder"], { isFolder: true });
    await page.waitForSelector("text=some folder is a folder: choose a file in it.");
    await pressed(page, "Look at an example");
    await page.getByLabel("only tensors that overflow or become 0").check();
    await page.waitForFunction(() => location.search === "?file=example&rows=lossy");
    await page.reload();
    await page.waitForSelector("text=an example: 5 tensors.");
    expect(await page.locator(".exams tbody tr").count()).toBe(4);
  }));

/** Drops files without tensors on the margin of a page, which must not let the browser open them. */
async function dropped(page: Page, names: string[], { isFolder = false } = {}): Promise<void> {
  const isTaken = await page.evaluate(
    ([given, folder]) => {
      const transfer = new DataTransfer();
      for (const name of given) transfer.items.add(new File(["\u0002\0\0\0\0\0\0\0{}"], name));
      if (folder) {
        const entry = { isDirectory: true, name: given[0] };
        DataTransferItem.prototype.webkitGetAsEntry = () => entry as FileSystemEntry;
      }
      const init = { bubbles: true, cancelable: true, dataTransfer: transfer };
      document.body.dispatchEvent(new DragEvent("dragover", init));
      return !document.body.dispatchEvent(new DragEvent("drop", init));
    },
    [names, isFolder] as const,
  );
  expect(isTaken).toBe(true);
}

test("files of other kinds are named as such", () =>
  onPage("file.html", "light", async (page) => {
    const choose = (name: string, content: string | Buffer): Promise<void> =>
      page.setInputFiles("input[type=file]", {
        ...{ name, mimeType: "application/octet-stream", buffer: Buffer.from(content) },
      });
    await choose("model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
    await page.waitForSelector("text=is a Git LFS pointer");
    await choose("my model.pt", "PK\u0003\u0004");
    await page.waitForSelector(
      "text=my model.pt is a torch checkpoint: npx halfstep-convert 'my model.pt'",
    );
    const nan = { dtype: "F32", shape: [1], data: Float32Array.of(Number.NaN) } as const;
    await choose("nan.safetensors", Buffer.from(writeSafetensors({ nan })));
    await page.waitForSelector("text=nan.safetensors: 1 tensor.");
    expect(await page.innerText(".exams tbody td.figure")).toMatch(/^—\s+100 % NaN or ∞$/);
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

test("an address that makes no sense shows the usual page, and a line", () =>
  onPage("train.html?setups=float12&lr=NaN&scale=1000000000&fbclid=1", "light", async (page) => {
    await page.waitForSelector("text=This page does not understand setups=float12, lr=NaN, scale=");
    expect(await page.locator(".lane").count()).toBe(3);
    expect(await obstaclesOf(page)).toEqual([]);
  }));

test("the choice of a lane begins no new run, and one precision always stays", () =>
  onPage("train.html?compute=cpu&setups=float16.bfloat16", "light", async (page) => {
    await trainTo(page, 2);
    await page.getByLabel("in which precision").selectOption("bfloat16");
    await page.waitForFunction(() => location.search.endsWith("&lane=bfloat16"));
    expect(await page.innerText(".transport p")).not.toContain("step 0");
    await page.locator("summary", { hasText: "Make your own experiment" }).click();
    await page.locator(".setups input:checked").first().uncheck();
    expect(await page.locator(".setups input:checked").count()).toBe(1);
    expect(await page.locator(".setups input:checked").isDisabled()).toBe(true);
  }));
