class Assay < Formula
  desc "Performance experiments that end in a verdict"
  homepage "https://assay.dev"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@DOWNLOADS@/assay_@VERSION@_darwin_arm64.tar.gz"
      sha256 "@SHA256_darwin_arm64@"
    end
    on_intel do
      url "@DOWNLOADS@/assay_@VERSION@_darwin_amd64.tar.gz"
      sha256 "@SHA256_darwin_amd64@"
    end
  end

  on_linux do
    on_arm do
      url "@DOWNLOADS@/assay_@VERSION@_linux_arm64.tar.gz"
      sha256 "@SHA256_linux_arm64@"
    end
    on_intel do
      url "@DOWNLOADS@/assay_@VERSION@_linux_amd64.tar.gz"
      sha256 "@SHA256_linux_amd64@"
    end
  end

  def install
    bin.install Dir["assay", "assay-runner"]
    bin.install_symlink bin/"assay" => "kubectl-assay"
    generate_completions_from_executable(bin/"assay", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/assay version")
  end
end
