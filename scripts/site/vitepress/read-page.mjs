import { Parser } from "htmlparser2";

/** Tags whose address the browser loads with the page. */
const loading = new Set(["script", "img", "link", "iframe", "source", "video", "audio"]);

/**
 * What a page of HTML leads to, and which places in it can be led to.
 * @param {string} html
 */
export const readPage = (html) => {
  const links = [];
  const anchors = new Set();
  const parser = new Parser({
    onopentag(tag, { href, src, id, name }) {
      for (const anchor of [id, name]) if (anchor !== undefined) anchors.add(anchor);
      for (const url of [href, src])
        if (url !== undefined) links.push({ url, isLoaded: loading.has(tag) });
    },
  });
  parser.end(html);
  return { links, anchors };
};
