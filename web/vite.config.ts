import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Built into the Python package, which serves it. Addresses are relative, so that it works below any path.
export default defineConfig({
  plugins: [react()],
  base: "./",
  build: {
    outDir: "../python/tcplab/server/page",
    emptyOutDir: true,
    target: "es2021",
    chunkSizeWarningLimit: 1600,
  },
  // A test reads the colours.
  test: { css: true },
  server: { proxy: { "/api": { target: "http://127.0.0.1:8020", ws: true } } },
});
