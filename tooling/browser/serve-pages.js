import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const types = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".mjs": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

export const strictPolicy =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; base-uri 'none'; form-action 'none'";

export const servePages = async ({ folder, files = {}, base = "/", policy = strictPolicy }) => {
  const missing = [];
  const contentOf = async (path) => {
    if (Object.hasOwn(files, path)) return files[path];
    // A URL has no `..` that leads out of its root, as browsers and Node normalise it.
    return folder && (await readFile(join(folder, normalize(path))).catch(() => undefined));
  };
  const server = createServer(async ({ url }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const asked = decodeURIComponent(pathname);
    const inside = asked.startsWith(base) ? `/${asked.slice(base.length)}` : undefined;
    const path = inside?.endsWith("/") ? `${inside}index.html` : inside;
    const content = path && (await contentOf(path));
    if (content === undefined) {
      missing.push(asked);
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      "content-type": types[extname(path)] ?? "application/octet-stream",
      "content-security-policy": policy,
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
    });
    response.end(content);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}${base}`,
    missing,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
};
