import { escapeHtml } from "./html.js";

/** Something that a model did, to look at: a test image and its class, a text that it wrote, a picture before and after. */
export interface Sample {
  /** What it is called. Plain text, as all of it is. */
  readonly title?: string | undefined;
  /** Side by side. */
  readonly pictures?: readonly SamplePicture[] | undefined;
  /** Shown with its line breaks. */
  readonly text?: string | undefined;
  /** What is right. */
  readonly label?: string | undefined;
  /** What the model says; in red where there is a label that it is not. */
  readonly prediction?: string | undefined;
}

/** A picture among the samples of a report. */
export interface SamplePicture {
  /** A PNG, JPEG or WebP file: it becomes a part of the page. `encodePng` of `@halfstep/trainer/node` makes one of pixels. */
  readonly bytes: Uint8Array;
  /** What it shows: "before", "truth", … */
  readonly caption?: string | undefined;
  /** How wide it is shown, in CSS pixels. Default: as wide as it is. Small ones show their pixels. */
  readonly width?: number | undefined;
}

/** Samples in rows, as HTML. */
export const samplesHtml = (samples: readonly Sample[]): string =>
  `<div class="samples">\n${samples.map(sampleHtml).join("\n")}\n</div>`;

function sampleHtml({ title, pictures = [], text, label, prediction }: Sample): string {
  const isWrong = label !== undefined && prediction !== undefined && label !== prediction;
  const line = (content: string | undefined, kind = ""): string =>
    content === undefined ? "" : `<div${kind}>${escapeHtml(content)}</div>`;
  return [
    `<div class="sample ${text === undefined ? "pictured" : "text"}">`,
    line(title, ' class="title"'),
    pictures.length === 0
      ? ""
      : `<div class="pictures">${pictures.map(pictureHtml).join("")}</div>`,
    text === undefined ? "" : `<pre>${escapeHtml(text)}</pre>`,
    line(label),
    line(prediction && `→ ${prediction}`, isWrong ? ' class="wrong"' : ""),
    "</div>",
  ].join("");
}

function pictureHtml({ bytes, caption, width }: SamplePicture): string {
  const size = width === undefined ? "" : ` width="${width}"`;
  const below = caption === undefined ? "" : `<figcaption>${escapeHtml(caption)}</figcaption>`;
  return `<figure><img src="data:${typeOf(bytes)};base64,${base64(bytes)}"${size} alt="${escapeHtml(caption ?? "")}">${below}</figure>`;
}

/** By how files of the type begin. */
const typeOf = ([first, second]: Uint8Array): string => {
  if (first === 0xff && second === 0xd8) return "image/jpeg";
  return first === 0x52 && second === 0x49 ? "image/webp" : "image/png";
};

const base64 = (bytes: Uint8Array): string => {
  const piece = 2 ** 15;
  let text = "";
  for (let at = 0; at < bytes.length; at += piece)
    text += String.fromCharCode(...bytes.subarray(at, at + piece));
  return btoa(text);
};
