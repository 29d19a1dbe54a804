import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

/** The server that `npm run dev` and `npm run preview` hand calls to. */
const server = process.env.WOODRAT_SERVER ?? "http://127.0.0.1:8787";

/** Hand a path to the server as a call of its own site: it refuses other hosts and origins. */
const handed = {
  target: server,
  changeOrigin: true,
  headers: { origin: server },
};
const proxy = Object.fromEntries(
  ["/v1", "/session", "/openapi.json", "/docs", "/healthz", "/readyz"].map((path) => [path, handed]),
);

export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } })],
  build: {
    outDir: "../src/woodrat/inspector/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2022",
    chunkSizeWarningLimit: 400,
  },
  server: { proxy, host: "127.0.0.1" },
  preview: { proxy, host: "127.0.0.1" },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
