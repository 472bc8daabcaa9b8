/** A bucket of S3, or of whatever speaks as it does; signed by aws4fetch, which pages and workers can run. */
import { AwsClient } from "aws4fetch";
import { sha256 } from "viem";
import { plainHex } from "../names.js";
import { type Store, objectName } from "./store.js";
import { ask, httpStore } from "./http.js";

/** Which bucket, and by which key. */
export interface S3StoreOptions {
  bucket: string;
  /** Before the names, without a slash at its ends; none if left out. */
  prefix?: string | undefined;
  /** `us-east-1` if left out. */
  region?: string | undefined;
  /** Of a server that is not Amazon's: the bucket is then the first part of the path. */
  endpoint?: string | undefined;
  accessKeyId: string;
  secretAccessKey: string;
  /** Of temporary credentials. */
  sessionToken?: string | undefined;
}

/** A bucket whose owner can let others in. */
export interface S3Store extends Store {
  /** A URL by which whoever has it reads or writes one object without a key, for so many seconds, 3,600 if left out: what `httpStore` of a page takes. */
  sign(name: string, method: "GET" | "PUT", seconds?: number): Promise<string>;
}

/** Objects in a bucket. Keys belong on servers: a page has its objects' URLs signed by one. */
export function s3Store({ bucket, prefix, region = "us-east-1", endpoint, ...keys }: S3StoreOptions): S3Store {
  const aws = new AwsClient({ ...keys, region, service: "s3" });
  const base = endpoint ? `${endpoint.replace(/\/$/, "")}/${bucket}` : `https://${bucket}.s3.${region}.amazonaws.com`;
  const at = (name: string) => [base, prefix, name].filter(Boolean).join("/");
  return {
    name: `s3://${bucket}${prefix ? `/${prefix}` : ""}`,
    get: async (object, { signal }) => {
      const { url, headers } = await aws.sign(at(objectName(object)));
      return (await ask(url, { headers, signal }))?.body ?? null;
    },
    put: async (object, bytes, { signal }) => {
      // Signed with the digest, which the server compares with what arrives.
      const digest = "digest" in object ? object.digest : sha256(bytes);
      const signed = await aws.sign(at(objectName(object)), { method: "PUT", headers: { "x-amz-content-sha256": plainHex(digest) } });
      const answer = await ask(signed.url, { method: "PUT", headers: signed.headers, body: bytes as BodyInit, signal });
      if (!answer) throw new Error(`there is no bucket ${bucket}`);
      await answer.body?.cancel();
    },
    sign: async (name, method, seconds = 3_600) => {
      const url = new URL(at(name));
      url.searchParams.set("X-Amz-Expires", `${seconds}`);
      return (await aws.sign(url.href, { method, aws: { signQuery: true } })).url;
    },
  };
}

/** For a page without keys: objects by URLs that its server signs. */
export const signedStore = (name: string, sign: S3Store["sign"]): Store => ({ ...httpStore("https://signed.invalid", { sign }), name });
