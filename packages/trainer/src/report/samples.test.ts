import { inflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { exampleMetrics, exampleSummary } from "../../test/example-run.js";
import { encodePng } from "../encode-png.js";
import { renderReport } from "./render-report.js";
import { samplesHtml } from "./samples.js";

const png = encodePng({
  width: 2,
  height: 1,
  channels: 3,
  pixels: Uint8Array.of(1, 2, 3, 4, 5, 6),
});

describe("samples of a report", () => {
  it("are pictures within the page, with what is right and what was said", () => {
    const html = samplesHtml([
      {
        title: "test image 3",
        pictures: [
          { bytes: png, width: 112 },
          { bytes: Uint8Array.of(0xff, 0xd8), caption: "after" },
        ],
        label: "7",
        prediction: "1",
      },
      { label: "2", prediction: "2" },
    ]);
    expect(html).toContain(
      `<img src="data:image/png;base64,${Buffer.from(png).toString("base64")}" width="112" alt="">`,
    );
    expect(html).toContain('<img src="data:image/jpeg;base64,/9g=" alt="after"><figcaption>after');
    expect(html).toContain('<div>7</div><div class="wrong">→ 1</div>');
    expect(html).toContain("<div>2</div><div>→ 2</div>");
  });

  it("are texts with their line breaks, escaped", () => {
    const html = samplesHtml([{ title: "<b>", text: "a & b\n<c>", prediction: "spam" }]);
    expect(html).toContain("<pre>a &#38; b\n&#60;c&#62;</pre>");
    expect(html).toContain("&#60;b&#62;");
    expect(html).toContain("<div>→ spam</div>");
  });

  it("stand in the report, before what a step costs", async () => {
    const html = await renderReport(exampleSummary, exampleMetrics(4), {
      samples: [{ text: "to be" }],
    });
    const at = (title: string): number => html.indexOf(`<h2>${title}</h2>`);
    expect(at("Samples")).toBeGreaterThan(at("Training loss"));
    expect(at("Samples")).toBeLessThan(at("What a step costs"));
    expect(await renderReport(exampleSummary, exampleMetrics(4))).not.toContain("Samples");
  });
});

describe("encodePng", () => {
  it("writes chunks that readers know, and rows without filters", () => {
    const bytes = Buffer.from(png);
    expect(bytes.subarray(0, 8).toString("latin1")).toBe("\u0089PNG\r\n\u001a\n");
    expect(bytes.subarray(8, 33).toString("hex")).toBe(
      // Length, IHDR, 2 × 1 pixels of 8 bits in RGB, and the CRC that libpng gives them.
      "0000000d4948445200000002000000010802000000" + "7b40e8dd",
    );
    const length = bytes.readUInt32BE(33);
    expect([...inflateSync(bytes.subarray(41, 41 + length))]).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(() =>
      encodePng({ width: 2, height: 2, channels: 1, pixels: new Uint8Array(3) }),
    ).toThrow("2×2 pixels of 1 channels are 4 bytes, not 3");
  });
});
